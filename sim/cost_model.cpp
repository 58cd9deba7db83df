#include "sim/cost_model.h"

#include <limits>
#include <variant>

#include "profiles/error.h"
#include "sim/collective_cost.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

Duration part_of(const CostSample& cost, LayerPart part) {
  switch (part) {
    case LayerPart::kForward:
      return cost.forward;
    case LayerPart::kBackwardInput:
      return cost.backward_input;
    case LayerPart::kBackwardWeight:
      return cost.backward_weight;
    case LayerPart::kForwardFrozen:
      return cost.forward_frozen;
    case LayerPart::kBackwardWeightAlone:
      return cost.backward_weight_alone;
    case LayerPart::kUpdate:
      break;
  }
  fail_ensure(__FILE__, __LINE__, "an update has no cost by micro-batch size");
}

struct Pricer {
  Setting setting;
  bool extrapolated = false;

  Duration operator()(const Fixed& fixed) const { return fixed.duration; }

  Duration operator()(const Compute& compute) {
    const std::vector<Device>& devices = setting.cluster().devices;
    ENSURE(compute.device.index() < devices.size(), "work names an unknown device");
    const Device& device = devices[compute.device.index()];
    Wide sum = 0;
    for (const LayerWork& part : compute.parts) {
      sum += time_of(part, compute.micro_batch_size).count();
    }
    const Duration overhead = compute.goes_on ? Duration{0} : device.action_overhead;
    const Wide time = scale_ppm(sum, device.time_ppm) + overhead.count();
    if (time > std::numeric_limits<std::int64_t>::max()) {
      throw InfeasibleError("the work of one action takes more than 2^63 ns, which is 292 years");
    }
    return Duration{static_cast<std::int64_t>(time)};
  }

  Duration operator()(const ComputePair& pair) {
    return (*this)(pair.first) + (*this)(pair.second);
  }

  Duration operator()(const Transfer& transfer) const {
    return transfer.size / setting.cluster().link(transfer.from, transfer.to).bandwidth;
  }

  Duration operator()(const Hop& hop) const {
    return setting.cluster().link(hop.from, hop.to).latency;
  }

  Duration operator()(const Collective& collective) const {
    return collective_cost(collective, setting.cluster()).time;
  }

 private:
  Duration time_of(const LayerWork& work, int micro_batch_size) {
    const std::vector<Layer>& layers = setting.profile().layers;
    ENSURE(work.layer.index() < layers.size(), "work names an unknown layer");
    const Layer& layer = layers[work.layer.index()];
    if (work.part == LayerPart::kUpdate) {
      return layer.update;
    }
    const LayerCost at = cost_at(layer, micro_batch_size);
    extrapolated = extrapolated || at.extrapolated;
    return part_of(at.cost, work.part);
  }
};

}  // namespace

Duration price(const Work& work, Setting setting, bool* extrapolated) {
  Pricer pricer{setting};
  const Duration time = std::visit(pricer, work);
  if (extrapolated != nullptr && pricer.extrapolated) {
    *extrapolated = true;
  }
  return time;
}

Prices price_all(const TaskGraph& graph, Setting setting) {
  Prices prices;
  prices.of_work.reserve(graph.works().size());
  for (const Work& work : graph.works()) {
    prices.of_work.push_back(price(work, setting, &prices.extrapolated));
  }
  return prices;
}

}  // namespace frazil
