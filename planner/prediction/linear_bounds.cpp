#include "planner/prediction/linear_bounds.h"

#include <algorithm>
#include <utility>

#include "planner/orders/linear_orders.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The least times from the start of a stage's first F.
struct StageReach {
  Duration last_end{0};    // end of all its work
  Duration last_input{0};  // end of its last I
};

StageReach bound_stage(const StageTimes& times, Duration round_trip, std::int64_t m,
                       std::int64_t in_flight, bool halves) {
  const auto& [forward, input, weight] = times;
  const std::int64_t others = std::min(in_flight, m) - 1;
  const std::int64_t most_held = halves ? std::min(2 * others, m - 1) : others;
  const std::int64_t drained = weight > input ? most_held : others;
  const Duration drain = input * (2 * others - drained) + weight * drained;
  const Duration warm = std::max(kNoTime, round_trip - forward * others);
  const Duration cool = std::max(kNoTime, round_trip - drain);
  const Duration turn = std::max(kNoTime, round_trip - forward * others - drain);
  const Duration all = times.total() * m;
  const Duration last_forward =
      forward * m + input * (m - 1 - others) + weight * (m - 1 - most_held);
  const Duration inputs_left = input * (others + 1);
  if (m <= in_flight) {
    return {all + std::max(warm, cool),
            last_forward + std::max(warm + inputs_left, round_trip + input)};
  }
  const Duration waits = warm + turn * ((m - 1) / in_flight - 1);
  return {all + waits + cool, last_forward + waits + std::max(inputs_left, round_trip + input)};
}

LinearBound sum_up(std::string_view name, std::vector<Duration> spans,
                   const std::vector<Duration>& heads) {
  LinearBound bound{name, kNoTime, kNoTime, std::move(spans)};
  for (std::size_t s = 0; s < heads.size(); ++s) {
    bound.span = std::max(bound.span, bound.span_of_stage[s]);
    bound.makespan = std::max(bound.makespan, heads[s] + bound.span_of_stage[s]);
  }
  return bound;
}

std::vector<Duration> find_heads(const LinearPipeline& pipeline) {
  std::vector<Duration> heads{kNoTime};
  for (std::size_t b = 0; b < pipeline.down.size(); ++b) {
    heads.push_back(heads[b] + pipeline.times[b].forward + pipeline.down[b]);
  }
  return heads;
}

// Finds the boundary to the next stage; none if it carries no gradient.
std::optional<std::size_t> find_next_boundary(const PipelineTable& pipeline, std::size_t stage) {
  for (const std::size_t b : pipeline.stages[stage].outgoing) {
    const StageBoundary& boundary = pipeline.boundaries[b];
    if (boundary.to == StageId{stage + 1} && boundary.carries) return b;
  }
  return std::nullopt;
}

}  // namespace

Duration bound_span(const StageTimes& times, Duration round_trip, std::int64_t micro_batches,
                    std::int64_t in_flight, ActivationRelease release) {
  const bool halves = release == ActivationRelease::kHalfAtInput;
  return bound_stage(times, round_trip, micro_batches, in_flight, halves).last_end;
}

std::vector<LinearBound> find_linear_bounds(const LinearPipeline& pipeline) {
  const std::size_t stages = pipeline.times.size();
  ENSURE(stages >= 1 && pipeline.micro_batches >= 1, "a stage and a micro-batch");
  ENSURE(pipeline.down.size() + 1 == stages && pipeline.up.size() + 1 == stages &&
             pipeline.in_flight.size() == stages,
         "hops and micro-batches in flight of every stage");
  const bool split = pipeline.splits_backward;
  const bool halves = pipeline.release == ActivationRelease::kHalfAtInput;
  std::vector<Duration> devices(stages);
  std::vector<Duration> chains(stages);
  Duration round_trip = kNoTime;
  Duration last_input = kNoTime;  // of stage s, over the chains through all later stages
  for (std::size_t s = stages; s-- > 0;) {
    const int in_flight = pipeline.in_flight[s];
    ENSURE(in_flight >= 1, "a stage that holds a micro-batch");
    StageTimes times = pipeline.times[s];
    if (!split) times = {times.forward, times.backward_input + times.backward_weight, kNoTime};
    const StageReach reach =
        bound_stage(times, round_trip, pipeline.micro_batches, in_flight, halves);
    last_input = std::max(last_input + times.forward + times.backward_input, reach.last_input);
    devices[s] = reach.last_end;
    chains[s] = last_input + times.backward_weight;
    if (s == 0) continue;
    const Duration hops = pipeline.down[s - 1] + pipeline.up[s - 1];
    round_trip += times.forward + times.backward_input + hops;
    last_input += hops;
  }
  const std::vector<Duration> heads = find_heads(pipeline);
  return {sum_up("device-warm-up-cool-down", std::move(devices), heads),
          sum_up("gradient-chain", std::move(chains), heads)};
}

std::optional<LinearClass> find_linear_class(const NamedSchedule& schedule,
                                             const PipelineTable& pipeline, int micro_batches) {
  const ScheduleFacts& facts = facts_of(schedule.kind);
  if (!has_linear_bounds(facts)) return std::nullopt;
  const auto stages = static_cast<int>(pipeline.stages.size());
  // gpipe runs all F, and 2bp all W, together, so a stage holds every micro-batch at once.
  const bool holds_all =
      facts.bounds == BoundClass::kTwoPhases || facts.bounds == BoundClass::kWeightsLast;
  const int depth =
      holds_all ? micro_batches : schedule.in_flight.value_or(facts.own_in_flight.on(stages));
  LinearClass found;
  found.splits_backward = facts.splits_backward;
  if (facts.bounds == BoundClass::kLevelInHalves) found.release = ActivationRelease::kHalfAtInput;
  const bool falls = facts.bounds == BoundClass::kFalling;
  for (int s = 0; s < stages; ++s) {
    const auto at = static_cast<std::size_t>(s);
    if (!pipeline.stages[at].has_backward) continue;  // only stages before the first with one
    found.in_flight.push_back(falls ? warm_up(depth, stages, s) : depth);
    if (s + 1 == stages) return found;
    const std::optional<std::size_t> next = find_next_boundary(pipeline, at);
    if (!next) return std::nullopt;
    found.boundaries.push_back(*next);
  }
  return std::nullopt;
}

LinearPipeline make_linear_pipeline(const LinearClass& linear, const MicroBatchClass& size) {
  const std::vector<StageTimes>& stages = size.times.parts;
  LinearPipeline pipeline;
  pipeline.micro_batches = size.count;
  pipeline.splits_backward = linear.splits_backward;
  pipeline.in_flight = linear.in_flight;
  pipeline.release = linear.release;
  pipeline.times.assign(stages.end() - static_cast<std::ptrdiff_t>(linear.in_flight.size()),
                        stages.end());
  for (const std::size_t boundary : linear.boundaries) {
    pipeline.down.push_back(size.times.down[boundary]);
    pipeline.up.push_back(size.times.up[boundary]);
  }
  return pipeline;
}

}  // namespace frazil
