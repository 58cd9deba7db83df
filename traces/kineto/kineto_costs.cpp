#include "traces/kineto/kineto_costs.h"

#include <algorithm>
#include <limits>

#include "profiles/units.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

std::size_t index_of(std::int32_t place) { return static_cast<std::size_t>(place); }

// What a piece of time was for; time for neither a layer nor the update is not attributed.
struct Purpose {
  std::int32_t layer = -1;
  bool is_update = false;

  bool is_known() const { return layer >= 0 || is_update; }
};

// A node that handed on the gradient of a transposed weight.
struct TransposedWeight {
  std::size_t work = 0;
  std::int64_t bytes = 0;
};

class CostSum {
 public:
  CostSum(const JoinedTrace& trace, const BackwardMatch& backward, const TraceLayers& layers)
      : trace_(trace), backward_(backward), layers_(layers) {
    const std::size_t steps = trace.steps.kept.size();
    costs_.layers.assign(layers.names.size(), std::vector<LayerStep>(steps));
    costs_.update.assign(steps, 0);
    costs_.is_device_time =
        std::any_of(trace.device.begin(), trace.device.end(),
                    [](const DeviceWork& work) { return !work.is_communication; });
  }

  TraceCosts run() {
    auto input = trace_.inputs.begin();
    for (std::size_t i = 0; i < trace_.works.size(); ++i) {
      const bool has_input = input != trace_.inputs.end() && index_of(input->work) == i;
      const std::int64_t bytes = has_input ? (input++)->bytes : -1;
      const std::int32_t step = trace_.step_of(trace_.works[i]);
      if (step >= 0) add_work(i, step, bytes);
    }
    for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
      if (trace_.ranges[i].step >= 0) add_range(i);
    }
    for (const DeviceWork& work : trace_.device) {
      if (work.step >= 0) add_device(work);
    }
    for (std::size_t step = 0; step < costs_.update.size(); ++step) share_update(step);
    return std::move(costs_);
  }

 private:
  LayerStep& at(std::int32_t layer, std::int32_t step) {
    return costs_.layers[index_of(layer)][index_of(step)];
  }

  bool is_update(std::int32_t range) const {
    return range >= 0 && trace_.ranges[index_of(range)].kind == RangeKind::kUpdate;
  }

  Purpose purpose_of(std::size_t work) const {
    return {layers_.of_work[work], is_update(trace_.works[work].range)};
  }

  void add_work(std::size_t i, std::int32_t step, std::int64_t input_bytes) {
    const HostWork& work = trace_.works[i];
    const Purpose purpose = purpose_of(i);
    add_share(costs_.operations, purpose, work.duration());
    if (purpose.layer >= 0) note_facts(i, input_bytes, at(purpose.layer, step));
    if (costs_.is_device_time) return;
    if (!purpose.is_known()) return add_unattributed(work.name, work.duration());
    const bool is_forward = work.kind == HostWorkKind::kForward;
    // add_range counts the time of these forwards.
    if (is_forward && (purpose.is_update || layers_.source == LayerSource::kRanges)) return;
    add_time(i, purpose, step, is_forward ? time_until_next(i) : work.duration());
  }

  // Returns the time of a forward: up to the next forward, pause included, if nothing else ran
  // between, so that it matches the time of a range. The pause before the first layer does not
  // count: there the next micro-batch is fetched.
  std::int64_t time_until_next(std::size_t i) const {
    const HostWork& work = trace_.works[i];
    if (i + 1 == trace_.works.size()) return work.duration();
    const HostWork& next = trace_.works[i + 1];
    const std::int32_t layer = layers_.of_work[i + 1];
    const bool goes_on = next.thread == work.thread &&
                         trace_.step_of(next) == trace_.step_of(work) &&
                         next.kind == HostWorkKind::kForward &&
                         (layer > 0 || (layer == 0 && layers_.of_work[i] == 0));
    return goes_on ? next.start - work.start : work.duration();
  }

  // True for a node that hands on the gradient of a weight that was transposed in the forward.
  bool is_transposed_weight(const HostWork& work) const {
    return work.kind == HostWorkKind::kBackwardNode &&
           node_name(trace_.names[work.name]).starts_with("TBackward");
  }

  // Notes that the layer ran, and what shapes tell of its parameters and output.
  void note_facts(std::size_t i, std::int64_t input_bytes, LayerStep& step) {
    const HostWork& work = trace_.works[i];
    switch (work.kind) {
      case HostWorkKind::kForward:
        step.ran = true;
        return;
      case HostWorkKind::kBackwardNode:
        if (backward_.part[i] == BackwardPart::kWeight) ++step.weight_nodes;
        if (is_transposed_weight(work)) {
          transposed_ = {i, std::max<std::int64_t>(input_bytes, 0)};
          add_saturating(step.unaccumulated, transposed_.bytes);
        }
        if (work.sequence <= step.output_sequence) return;
        step.output_sequence = work.sequence;
        step.output_bytes = input_bytes;
        return;
      case HostWorkKind::kAccumulateGradient:
        ++step.weight_nodes;
        ++step.parameters;
        if (input_bytes < 0) step.has_unknown_parameters = true;
        add_saturating(step.parameter_bytes, std::max<std::int64_t>(input_bytes, 0));
        step.largest_parameter = std::max(step.largest_parameter, input_bytes);
        if (i > 0 && transposed_.work == i - 1) step.unaccumulated -= transposed_.bytes;
    }
  }

  void add_range(std::size_t i) {
    const NestedRange& range = trace_.ranges[i];
    const std::int32_t layer = layers_.of_range[i];
    if (layer >= 0) at(layer, range.step).ran = true;
    if (costs_.is_device_time) return;
    if (layer >= 0) add_saturating(at(layer, range.step).forward, range.self);
    if (range.kind != RangeKind::kUpdate) return;
    add_saturating(costs_.update[index_of(range.step)], range.self);
  }

  void add_device(const DeviceWork& work) {
    if (work.is_communication) return add_saturating(costs_.communication, work.duration);
    Purpose purpose;
    if (work.work >= 0) {
      purpose = purpose_of(index_of(work.work));
    } else if (work.range >= 0) {
      purpose = {layers_.of_range[index_of(work.range)], is_update(work.range)};
    }
    add_share(costs_.device, purpose, work.duration);
    if (purpose.is_known() && work.work >= 0) {
      add_time(index_of(work.work), purpose, work.step, work.duration);
    } else if (purpose.layer >= 0) {
      add_saturating(at(purpose.layer, work.step).forward, work.duration);
    } else if (purpose.is_update) {
      add_saturating(costs_.update[index_of(work.step)], work.duration);
    } else if (work.work >= 0) {
      add_unattributed(trace_.works[index_of(work.work)].name, work.duration);
    } else {
      add_saturating(costs_.unattributed["(launched outside operations)"], work.duration);
    }
  }

  // Adds the time of a work, or of device work that it launched.
  void add_time(std::size_t i, const Purpose& purpose, std::int32_t step, std::int64_t time) {
    if (purpose.layer < 0) return add_saturating(costs_.update[index_of(step)], time);
    LayerStep& cost = at(purpose.layer, step);
    if (trace_.works[i].kind == HostWorkKind::kForward) return add_saturating(cost.forward, time);
    switch (backward_.part[i]) {
      case BackwardPart::kInput:
        return add_saturating(cost.input, time);
      case BackwardPart::kWeight:
        return add_saturating(cost.weight, time);
      case BackwardPart::kBoth:
        return add_saturating(cost.both, time);
    }
  }

  // Shares the update of a step among its layers. Shares are differences of a running sum, so that
  // they add up to the whole.
  void share_update(std::size_t step) {
    std::vector<LayerStep*> layers;
    for (std::vector<LayerStep>& steps : costs_.layers) layers.push_back(&steps[step]);
    const bool is_unknown = std::any_of(layers.begin(), layers.end(), [](const LayerStep* layer) {
      return layer->has_unknown_parameters;
    });
    const auto weight = [&](const LayerStep& layer) {
      return Wide{is_unknown ? layer.parameters : layer.parameter_bytes};
    };
    Wide total = 0;
    for (const LayerStep* layer : layers) total += weight(*layer);
    if (total == 0) return;
    const Wide update = std::min(costs_.update[step], kLargestQuantity);
    Wide before = 0;
    for (LayerStep* layer : layers) {
      const Wide after = before + weight(*layer);
      layer->update = static_cast<std::int64_t>(update * after / total - update * before / total);
      before = after;
    }
  }

  static void add_share(TimeShare& share, const Purpose& purpose, std::int64_t time) {
    add_saturating(share.total, time);
    if (purpose.is_known()) add_saturating(share.attributed, time);
  }

  void add_unattributed(std::uint32_t name, std::int64_t time) {
    add_saturating(costs_.unattributed[std::string(node_name(trace_.names[name]))], time);
  }

  const JoinedTrace& trace_;
  const BackwardMatch& backward_;
  const TraceLayers& layers_;
  TraceCosts costs_;
  TransposedWeight transposed_;  // the last one
};

}  // namespace

TraceCosts sum_costs(const JoinedTrace& trace, const BackwardMatch& backward,
                     const TraceLayers& layers) {
  return CostSum(trace, backward, layers).run();
}

void add_saturating(std::int64_t& sum, std::int64_t term) {
  if (__builtin_add_overflow(sum, term, &sum)) sum = std::numeric_limits<std::int64_t>::max();
}

}  // namespace frazil
