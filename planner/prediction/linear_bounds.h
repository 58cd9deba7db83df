#pragma once
// Lower bounds for a pipeline over linear placement, stage s alone on device s, that holds at most
// K_s micro-batches on stage s. They hold whatever the order of work on each device, and whenever
// the work starts.
//
// F, I (dgrad), W (wgrad) are the times of a stage, T their sum; a fused backward is an I of length
// I + W without a W, so that the gradient leaves after both. The m micro-batches are all alike:
// numbering them anew on each stage, kind by kind in the order of their starts, breaks no
// dependency and moves no work, so each kind may be taken to run in the order 0 .. m-1. A stage has
// these terms:
//   D      sum over later stages of F + I, and all hops there and back: I(i) starts no earlier than
//          D after the end of F(i)
//   n      min(K, m) - 1, the micro-batches that it holds beside one
//   drain  the most backward work of these n: n (I + W). If half of a micro-batch is released at I,
//          up to h = min(2 n, m - 1) micro-batches that have only W left fit instead: with W > I
//          drain is (2 n - h) I + h W
//   warm   max(0, D - n F): idle before I(0), when only F can run and n + 1 fit
//   cool   max(0, D - drain): idle from F(m-1) to its I, when only the held micro-batches can run
//   turn   max(0, D - n F - drain): idle from F(i) to I(i), when both can
// Bounds on the span of a stage, from its first start to its last end:
//   device-warm-up-cool-down
//     m T + max(warm, cool)              if m <= K: both may be the same wait
//     m T + warm + cool + (r - 1) turn   if m > K: with r = floor((m-1)/K), micro-batches 0, K, ..
//                                        wait in turn, for F(i+K) starts after I(i)
//   gradient-chain
//     sum over i <= k < j of F_k + I_k + hops, + reach_j + W_i, for stage i and any j >= i: F(0)
//     goes down to j, I(m-1) comes back. reach, from the start of F(0) to the end of I(m-1):
//     until the end of F(m-1) there are m F, m - 1 - n of I, m - 1 - n of W (m - 1 - h if half is
//     released at I) and, if m > K, warm + (r - 1) turn of idle time; then come D and one I, or
//     n + 1 of I and, if m <= K, warm.
// The makespan is at least head_s, the F and hops of one micro-batch before stage s, and the span
// of s. The terms D, warm and cool are those of Qi et al. 2024 (zero bubble pipelines).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/lowering/stage_work.h"
#include "planner/orders/device_order.h"
#include "planner/orders/zero_bubble_orders.h"
#include "planner/plan/plan.h"
#include "planner/prediction/micro_batch_paths.h"

namespace frazil {

struct LinearPipeline {
  std::vector<StageTimes> times;  // by stage
  std::vector<Duration> down;     // by boundary s -> s + 1: the hop of an activation
  std::vector<Duration> up;       // by boundary: the hop of a gradient
  int micro_batches = 1;          // m
  std::vector<int> in_flight;     // by stage: K, held from F to W, or to B
  bool splits_backward = true;
  ActivationRelease release = ActivationRelease::kAllAtWeight;  // where the backward is split
};

struct LinearBound {
  std::string_view name;
  Duration makespan{0};
  Duration span{0};  // of the stage with the longest
  std::vector<Duration> span_of_stage;
};

// Returns the bound device-warm-up-cool-down on the span of one stage that holds at most K
// micro-batches, from its own times and `round_trip` (D) alone. Where D is the least over all ways
// to cut the later layers, so is the span. A fused backward is an I without a W.
Duration bound_span(const StageTimes& times, Duration round_trip, std::int64_t micro_batches,
                    std::int64_t in_flight, ActivationRelease release);

// Returns both bounds, in the order above. Requires: m >= 1, K >= 1, p >= 1 stages and p - 1
// boundaries.
std::vector<LinearBound> find_linear_bounds(const LinearPipeline& pipeline);

// The stages of a plan's pipeline for which these bounds hold: its last stages, from the first
// stage with a backward on, if each boundary between them carries gradients. The stages before are
// part of the head. Further work of a device, R or another stage, only adds time.
struct LinearClass {
  bool splits_backward = false;
  ActivationRelease release = ActivationRelease::kAllAtWeight;
  std::vector<int> in_flight;           // by stage, the last stages only
  std::vector<std::size_t> boundaries;  // between these stages, by index in the pipeline
};

// Returns none for pipelines and schedules without linear bounds. K of gpipe and 2bp is m; K of
// 1f1b and eager-1f1b falls from stage to stage (warm_up in planner/orders/linear_orders.h); K of
// zb-h1, zb-h2, zb-1p and zb-2p is equal on every stage, and zb-1p and zb-2p release a half at I.
std::optional<LinearClass> find_linear_class(const NamedSchedule& schedule,
                                             const PipelineTable& pipeline, int micro_batches);

// Makes the pipeline as if all micro-batches had the size of this class. Requires: no slices.
LinearPipeline make_linear_pipeline(const LinearClass& linear, const MicroBatchClass& size);

}  // namespace frazil
