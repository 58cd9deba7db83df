#include "planner/orders/zero_bubble_v_orders.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "planner/orders/endless_times.h"
#include "planner/orders/wave_orders.h"
#include "planner/orders/wave_sweep.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// What a further sweep gains gets small: no case is known in which a fifth one gained anything.
constexpr int kMostSweeps = 4;

constexpr std::array kWeightsFirst{WeightsFirst{true, true}, WeightsFirst{false, true},
                                   WeightsFirst{true, false}, WeightsFirst{false, false}};

WavePipeline read_wave(const OrderProblem& problem) {
  if (problem.times.empty()) {
    throw InfeasibleError("zb-v-auto decides by cost and needs the times of the stages");
  }
  ENSURE(problem.times.size() == static_cast<std::size_t>(problem.stages()),
         "times of every stage");
  WavePipeline pipeline{{}, {}, problem.micro_batches, problem.hop};
  for (int d = 0; d < problem.devices; ++d) {
    const StageTimes& chunk0 = problem.times[static_cast<std::size_t>(d)];
    const StageTimes& chunk1 = problem.times[static_cast<std::size_t>(problem.stages() - 1 - d)];
    pipeline.lengths.push_back({chunk0.forward, chunk1.forward, chunk1.backward_input,
                                chunk0.backward_input, chunk1.backward_weight,
                                chunk0.backward_weight});
    pipeline.loads.push_back((chunk0.total() + chunk1.total()) * problem.micro_batches);
  }
  return pipeline;
}

// Returns what no order can beat: each device runs all of its work, and begins when micro-batch 0
// can be there.
WaveScore bound_wave(const WavePipeline& pipeline) {
  WaveScore bounds{Duration{0}, Duration{0}};
  Duration head{0};
  for (std::size_t d = 0; d < pipeline.loads.size(); ++d) {
    bounds.span = std::max(bounds.span, pipeline.loads[d]);
    bounds.makespan = std::max(bounds.makespan, head + pipeline.loads[d]);
    head += pipeline.lengths[d][index_of(WavePart::kF0)] + pipeline.hop;
  }
  return bounds;
}

}  // namespace

DeviceOrders make_zb_v_auto_order(const OrderProblem& problem) {
  refuse_what_zb_v_is_not(problem, "zb-v-auto");
  refuse_endless_times(problem);
  const WavePipeline pipeline = read_wave(problem);
  const WaveScore bounds = bound_wave(pipeline);
  DeviceOrders orders = make_zb_v_order(problem);
  WaveSweep fixed(pipeline);
  fixed.follow(orders);
  WaveScore best = fixed.score();
  for (const WeightsFirst& weights_first : kWeightsFirst) {
    std::vector<Duration> spans;
    Duration below = kFarAway;
    for (int sweeps = 0; sweeps < kMostSweeps && best != bounds; ++sweeps) {
      WaveSweep sweep(pipeline);
      if (!sweep.make(weights_first, spans, below)) break;
      const WaveScore score = sweep.score();
      spans = sweep.spans();
      below = score.span;
      if (score >= best) continue;
      best = score;
      orders = sweep.orders();
    }
  }
  return orders;
}

}  // namespace frazil
