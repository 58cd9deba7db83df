#include "traces/kineto/kineto_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "profiles/error.h"
#include "profiles/import/imported_profile.h"

namespace frazil {
namespace {

constexpr std::string_view kModule = "nn.Module: ";
constexpr std::string_view kOperators = "aten::";

// Facts are kept for each layer in each step (LayerStep), whether or not it ran there: so many may
// be, and this many more for each event that is kept, before a trace is refused.
constexpr std::size_t kFreeFacts = std::size_t{1} << 17;
constexpr std::size_t kFactsPerEvent = 4;

std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

void refuse_more_layers(const std::string& file, std::size_t layers) {
  if (layers <= kMostImportedLayers) return;
  throw InputError(file, 0, fmt::format("more than {} layers", kMostImportedLayers),
                   fmt::format("at most {} layers in a step", kMostImportedLayers));
}

// Numbers layers by name, in the order in which they come.
class LayerNumbers {
 public:
  explicit LayerNumbers(const std::string& file) : file_(file) {}

  std::int32_t number_of(const std::string& name) {
    const auto [place, is_new] =
        numbers_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    refuse_more_layers(file_, names_.size());
    return place->second;
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  const std::string& file_;
  std::map<std::string, std::int32_t> numbers_;
  std::vector<std::string> names_;
};

// Returns how often each layer runs in each step in which it does; none if not equally often.
// `order` lists the ranges by start. A range that begins inside one of the same layer, as of a
// module that was marked twice, is no further run.
std::optional<int> count_passes(const JoinedTrace& trace, const std::vector<std::size_t>& order,
                                const std::vector<std::int32_t>& of_range) {
  struct Passes {
    int count = 0;
    std::int64_t end = 0;  // of the last one
  };
  std::map<std::pair<std::int32_t, std::int32_t>, Passes> by_layer_and_step;
  for (const std::size_t i : order) {
    const NestedRange& range = trace.ranges[i];
    Passes& passes = by_layer_and_step[{of_range[i], range.step}];
    if (passes.count > 0 && range.start < passes.end) continue;
    ++passes.count;
    passes.end = range.end;
  }
  if (by_layer_and_step.empty()) return std::nullopt;
  const int count = by_layer_and_step.begin()->second.count;
  const bool is_equal = std::all_of(by_layer_and_step.begin(), by_layer_and_step.end(),
                                    [&](const auto& entry) { return entry.second.count == count; });
  return is_equal ? std::optional(count) : std::nullopt;
}

TraceLayers find_by_ranges(const JoinedTrace& trace) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < trace.ranges.size(); ++i) {
    const NestedRange& range = trace.ranges[i];
    const bool counts =
        range.kind == RangeKind::kLayer && range.step >= 0 && !range.is_inside_backward;
    if (counts) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return trace.ranges[a].start < trace.ranges[b].start;
  });
  TraceLayers layers{LayerSource::kRanges, {}, {}, {}, {}};
  layers.of_work.assign(trace.works.size(), -1);
  layers.of_range.assign(trace.ranges.size(), -1);
  LayerNumbers numbers(trace.file);
  for (const std::size_t i : order) {
    layers.of_range[i] = numbers.number_of(trace.names[trace.ranges[i].name]);
  }
  layers.names = numbers.take();
  layers.passes = count_passes(trace, order, layers.of_range);
  for (std::size_t i = 0; i < trace.works.size(); ++i) {
    const HostWork& work = trace.works[i];
    const bool is_inside = work.kind == HostWorkKind::kForward && work.range >= 0;
    if (is_inside) layers.of_work[i] = layers.of_range[index(work.range)];
  }
  return layers;
}

// One run of a layer: its works go from `begin` to the next passage.
struct Passage {
  std::size_t begin = 0;  // into StepForwards::works
  std::string name;
};

// The forwards of one step, in the order of time.
struct StepForwards {
  std::vector<std::uint32_t> works;
  std::vector<Passage> passages;
};

class LayersByOperations {
 public:
  LayersByOperations(const JoinedTrace& trace, const BackwardMatch& backward, int micro_batches)
      : trace_(trace),
        backward_(backward),
        micro_batches_(static_cast<std::size_t>(micro_batches)) {}

  TraceLayers find() {
    TraceLayers layers{LayerSource::kOperations, {}, {}, {}, {}};
    layers.of_work.assign(trace_.works.size(), -1);
    layers.of_range.assign(trace_.ranges.size(), -1);
    LayerNumbers numbers(trace_.file);
    for (StepForwards& step : list_forwards()) {
      find_passages(step);
      if (step.passages.empty()) continue;
      check_passages(step);
      for (std::size_t p = 0; p < step.passages.size(); ++p) {
        const std::size_t end =
            p + 1 < step.passages.size() ? step.passages[p + 1].begin : step.works.size();
        const std::int32_t layer = numbers.number_of(step.passages[p].name);
        for (std::size_t i = step.passages[p].begin; i < end; ++i) {
          layers.of_work[step.works[i]] = layer;
        }
      }
    }
    layers.names = numbers.take();
    return layers;
  }

 private:
  // Lists the forwards of each step, cut after the last forward that has a backward, if any has
  // one.
  std::vector<StepForwards> list_forwards() const {
    std::vector<bool> has_backward(trace_.works.size());
    for (const std::int32_t owner : backward_.owner) {
      if (owner >= 0) has_backward[index(owner)] = true;
    }
    std::vector<StepForwards> steps(trace_.steps.kept.size());
    for (std::uint32_t i = 0; i < trace_.works.size(); ++i) {
      const HostWork& work = trace_.works[i];
      if (work.kind != HostWorkKind::kForward || is_update(work)) continue;
      const std::int32_t step = trace_.step_of(work);
      if (step >= 0) steps[index(step)].works.push_back(i);
    }
    for (StepForwards& step : steps) {
      std::stable_sort(step.works.begin(), step.works.end(), [&](std::uint32_t a, std::uint32_t b) {
        return trace_.works[a].start < trace_.works[b].start;
      });
      const auto last = std::find_if(step.works.rbegin(), step.works.rend(),
                                     [&](std::uint32_t work) { return has_backward[work]; });
      if (last != step.works.rend()) step.works.erase(last.base(), step.works.end());
    }
    return steps;
  }

  bool is_update(const HostWork& work) const {
    return work.range >= 0 && trace_.ranges[index(work.range)].kind == RangeKind::kUpdate;
  }

  // Returns the range of the module call around a forward; -1: none.
  std::int32_t module_of(std::uint32_t work) const {
    const std::int32_t range = trace_.works[work].range;
    const bool is_module = range >= 0 && trace_.ranges[index(range)].kind == RangeKind::kModule;
    return is_module ? range : -1;
  }

  // Says whether operation i transposes the weight of the product after it, as in `x @ w.t()`: the
  // layer begins at the transpose.
  bool transposes_weight(const StepForwards& step, std::size_t i) const {
    if (operation(step, i) != "t" || i + 1 == step.works.size()) return false;
    const std::string_view next = operation(step, i + 1);
    return next == "addmm" || next == "mm" || next == "matmul";
  }

  bool begins_layer(const StepForwards& step, std::size_t i) const {
    if (transposes_weight(step, i)) return true;
    return starts_layer(operation(step, i)) && !(i > 0 && transposes_weight(step, i - 1));
  }

  std::string_view operation(const StepForwards& step, std::size_t i) const {
    return without_prefix(trace_.names[trace_.works[step.works[i]].name], kOperators);
  }

  void find_passages(StepForwards& step) const {
    std::int32_t last_module = -1;
    for (std::size_t i = 0; i < step.works.size(); ++i) {
      if (!begins_layer(step, i)) continue;
      const std::int32_t module = module_of(step.works[i]);
      if (module >= 0 && module == last_module) continue;
      last_module = module;
      step.passages.push_back({i, ""});
    }
    refuse_more_layers(trace_.file, step.passages.size() / micro_batches_);
    // Numbers start over with each micro-batch, which is an equal share of the passages.
    const std::size_t per_pass = std::max<std::size_t>(step.passages.size() / micro_batches_, 1);
    std::map<std::string, int, std::less<>> counts;
    for (std::size_t p = 0; p < step.passages.size(); ++p) {
      if (p % per_pass == 0) counts.clear();
      step.passages[p].name = name_passage(step, step.passages[p].begin, counts);
    }
  }

  std::string name_passage(const StepForwards& step, std::size_t begin,
                           std::map<std::string, int, std::less<>>& counts) const {
    const std::int32_t module = module_of(step.works[begin]);
    if (module >= 0) {
      return std::string(without_prefix(trace_.names[trace_.ranges[index(module)].name], kModule));
    }
    const std::string name(operation(step, transposes_weight(step, begin) ? begin + 1 : begin));
    return fmt::format("{}_{}", name, counts[name]++);
  }

  // Checks that each micro-batch of each step runs the same layers.
  void check_passages(const StepForwards& step) {
    const std::size_t count = step.passages.size() / micro_batches_;
    if (step.passages.size() % micro_batches_ != 0) {
      throw InputError(trace_.file, 0,
                       fmt::format("{} operations with parameters in a step", step.passages.size()),
                       fmt::format("as many in each of {} micro-batches", micro_batches_));
    }
    if (expected_.empty()) {
      for (std::size_t p = 0; p < count; ++p) expected_.push_back(step.passages[p].name);
    }
    for (std::size_t p = 0; p < step.passages.size(); ++p) {
      const std::string& name = step.passages[p].name;
      if (count != expected_.size() || name != expected_[p % count]) {
        throw InputError(
            trace_.file, 0,
            fmt::format("steps or micro-batches with other operations (\"{}\", layer {} of {})",
                        name, p % count, count),
            fmt::format("the {} layers of the first in each, or ranges that name layers",
                        expected_.size()));
      }
    }
  }

  const JoinedTrace& trace_;
  const BackwardMatch& backward_;
  std::size_t micro_batches_;
  std::vector<std::string> expected_;
};

// Throws for a trace of many layers and many steps of which most hold few of the layers: what is
// kept of them would be many times the file.
void check_facts(const JoinedTrace& trace, const TraceLayers& layers) {
  const std::size_t steps = trace.steps.kept.size();
  const std::size_t events = trace.works.size() + trace.ranges.size();
  if (layers.names.size() * steps <= kFreeFacts + kFactsPerEvent * events) return;
  throw InputError(trace.file, 0,
                   fmt::format("{} layers and {} steps, most of which hold few of the layers",
                               layers.names.size(), steps),
                   "the same layers in each step");
}

}  // namespace

bool starts_layer(std::string_view operation) {
  constexpr std::array<std::string_view, 30> kNames = {"linear",
                                                       "addmm",
                                                       "bilinear",
                                                       "conv1d",
                                                       "conv2d",
                                                       "conv3d",
                                                       "conv_transpose1d",
                                                       "conv_transpose2d",
                                                       "conv_transpose3d",
                                                       "convolution",
                                                       "_convolution",
                                                       "cudnn_convolution",
                                                       "mkldnn_convolution",
                                                       "batch_norm",
                                                       "native_batch_norm",
                                                       "cudnn_batch_norm",
                                                       "instance_norm",
                                                       "layer_norm",
                                                       "native_layer_norm",
                                                       "group_norm",
                                                       "native_group_norm",
                                                       "rms_norm",
                                                       "embedding",
                                                       "embedding_bag",
                                                       "lstm",
                                                       "gru",
                                                       "rnn_tanh",
                                                       "rnn_relu",
                                                       "_cudnn_rnn",
                                                       "prelu"};
  const std::string_view name = without_prefix(operation, kOperators);
  const bool is_loss = name.ends_with("_loss") || name.starts_with("binary_cross_entropy") ||
                       name.starts_with("nll_loss") || name == "kl_div";
  return is_loss || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

TraceLayers find_layers(const JoinedTrace& trace, const BackwardMatch& backward,
                        int micro_batches) {
  TraceLayers layers = find_by_ranges(trace);
  if (layers.names.empty()) {
    layers = LayersByOperations(trace, backward, micro_batches).find();
  }
  if (layers.names.empty()) {
    throw InputError(trace.file, 0,
                     "neither ranges that name layers nor operations with parameters",
                     "a trace of training steps");
  }
  check_facts(trace, layers);
  for (std::size_t i = 0; i < backward.owner.size(); ++i) {
    const std::int32_t owner = backward.owner[i];
    if (owner >= 0) layers.of_work[i] = layers.of_work[index(owner)];
  }
  return layers;
}

}  // namespace frazil
