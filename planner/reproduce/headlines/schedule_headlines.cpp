#include "planner/reproduce/headlines/schedule_headlines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/what_if/what_if.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

double quotient(Duration a, Duration b) {
  return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

constexpr EqualStages profiled(int devices, int micro_batches, int forward, int input, int weight,
                               int hop) {
  return {devices,
          micro_batches,
          microseconds{forward},
          microseconds{input},
          microseconds{weight},
          microseconds{hop}};
}

// What the authors of zero bubble profiled for 1.5, 6.2, 14.6 and 28.3 billion parameters (Qi et
// al. 2024; the settings of v_schedule.py in sail-sg/zero-bubble-pipeline-parallelism): for ZB-2p,
constexpr std::array kZeroBubbleProfiles = {
    profiled(8, 24, 18'522, 18'086, 9'337, 601),   profiled(8, 32, 18'513, 18'086, 9'331, 626),
    profiled(8, 64, 18'546, 18'097, 9'321, 762),   profiled(8, 24, 29'718, 29'444, 19'927, 527),
    profiled(8, 32, 29'802, 29'428, 19'530, 577),  profiled(8, 64, 29'935, 29'621, 19'388, 535),
    profiled(16, 48, 11'347, 11'248, 8'132, 377),  profiled(16, 64, 11'307, 11'254, 8'101, 379),
    profiled(16, 128, 11'325, 11'308, 8'109, 378), profiled(32, 96, 10'419, 10'207, 7'715, 408),
    profiled(32, 128, 10'408, 10'204, 7'703, 408), profiled(32, 256, 10'402, 10'248, 7'698, 460)};
// and for ZB-V, whose devices lie on more hosts.
constexpr std::array kZeroBubbleVProfiles = {
    profiled(16, 48, 14'407, 14'380, 9'676, 1'610),  profiled(16, 64, 14'412, 14'393, 9'688, 1'621),
    profiled(16, 128, 14'316, 14'306, 9'639, 1'619), profiled(24, 72, 6'763, 6'969, 5'251, 755),
    profiled(24, 96, 6'783, 6'984, 5'259, 758),      profiled(24, 192, 6'785, 6'990, 5'260, 770),
    profiled(32, 96, 9'458, 9'748, 7'288, 879),      profiled(32, 128, 9'469, 9'744, 7'306, 892),
    profiled(32, 256, 9'447, 9'644, 7'193, 887)};

double over_1f1b(const EqualStages& stages, ScheduleKind kind) {
  return quotient(time_schedule(stages, ScheduleKind::kOneForwardOneBackward).makespan,
                  time_schedule(stages, kind).span);
}

template <class Profiles>
double most_over_1f1b(const Profiles& profiles, ScheduleKind kind) {
  double most = 0;
  for (const EqualStages& stages : profiles) most = std::max(most, over_1f1b(stages, kind));
  return most;
}

// Stages whose F, I and W take the same time, as papers draw them, and those where a backward takes
// as long as a forward.
EqualStages drawn(int devices, int micro_batches) {
  return {devices, micro_batches, milliseconds{2}, milliseconds{2}, milliseconds{2}};
}
EqualStages halved(int devices, int micro_batches) {
  return {devices, micro_batches, milliseconds{2}, milliseconds{1}, milliseconds{1}};
}

Duration idle(const EqualStages& stages, ScheduleKind kind) {
  const Duration work =
      (stages.forward + stages.backward_input + stages.backward_weight) * stages.micro_batches;
  return time_schedule(stages, kind).span - work;
}

// Published in arXiv 2401.10241 (abstract; ZB-H1 in its section on schedules) and in thread 21 of
// the authors' repository.
std::vector<ResultRow> list_zero_bubble() {
  const EqualStages& shown = kZeroBubbleProfiles[4];
  const std::string on_h800 =
      "reported for 6.2 B parameters on 8 H800; the authors' profile of that model on A100 and 32 "
      "micro-batches are assumed";
  const Duration fused = time_schedule(shown, ScheduleKind::kOneForwardOneBackward).makespan;
  const std::string steps =
      "the largest over the published profiles; the rest of a step, the same "
      "in both, was not published";
  return {{"ZB-2p over 1F1B, at most", 1.31,
           most_over_1f1b(kZeroBubbleProfiles, ScheduleKind::kZb2p), RowRole::kPrediction, steps},
          {"ZB-V over 1F1B in the same memory, at most", 1.23,
           most_over_1f1b(kZeroBubbleVProfiles, ScheduleKind::kZbV), RowRole::kPrediction, steps},
          {"ZB-H1, idle time / that of 1F1B", 1.0 / 3,
           quotient(idle(drawn(8, 32), ScheduleKind::kZbH1),
                    idle(drawn(8, 32), ScheduleKind::kOneForwardOneBackward)),
           RowRole::kPrediction, "F = I = W, as drawn"},
          {"interleaved 1F1B over 1F1B, 66 / 55 samples/s", 66.0 / 55,
           quotient(fused, time_schedule(shown, ScheduleKind::kInterleaved, 4).makespan),
           RowRole::kPrediction, on_h800 + ", 4 chunks"},
          {"ZB-2p over 1F1B, 67 / 55 samples/s", 67.0 / 55, over_1f1b(shown, ScheduleKind::kZb2p),
           RowRole::kPrediction, on_h800},
          {"ZB-V over 1F1B, 64 / 55 samples/s", 64.0 / 55, over_1f1b(shown, ScheduleKind::kZbV),
           RowRole::kPrediction, on_h800}};
}

// Published in arXiv 2405.18047 (Rae, Lee, Richings).
ResultRow compare_two_bp() {
  constexpr double kPublished = 1.70;
  const EqualStages stages = drawn(4, 4);
  const auto needed = weight_ratio_for(kPublished, stages.devices, stages.micro_batches);
  return {"2BP over 1F1B, LLaMA-7B on 4 GPUs", kPublished,
          quotient(time_schedule(stages, ScheduleKind::kOneForwardOneBackward).makespan,
                   time_schedule(stages, ScheduleKind::kTwoBp).makespan),
          RowRole::kPrediction,
          fmt::format("F = I = W and a micro-batch per GPU are assumed; as a matter of order alone "
                      "the published ratio takes a W of {:.1f} times F + I: it was measured "
                      "against autograd, which 2BP replaces",
                      needed.value_or(0))};
}

// Returns by how much BitPipe is faster than schedules that need as little memory. Published in
// arXiv 2410.19367 (Wu, Chen, Yu).
std::vector<ResultRow> compare_bitpipe() {
  constexpr int kDevices = 8;
  std::vector<double> faster;
  for (const int micro_batches : {kDevices, 2 * kDevices}) {
    const EqualStages stages = drawn(kDevices, micro_batches);
    const Duration own = time_schedule(stages, ScheduleKind::kBitPipe).makespan;
    for (const ScheduleKind rival : {ScheduleKind::kInterleaved, ScheduleKind::kChimera}) {
      faster.push_back(quotient(time_schedule(stages, rival).makespan, own));
    }
  }
  const auto [least, most] = std::minmax_element(faster.begin(), faster.end());
  const std::string reason =
      "interleaved 1F1B and Chimera on 8 devices, one and two micro-batches per device, F = I = W "
      "and free messages are assumed";
  return {
      {"BitPipe over synchronous schedules, at least", 1.05, *least, RowRole::kPrediction, reason},
      {"BitPipe over synchronous schedules, at most", 1.28, *most, RowRole::kPrediction, reason}};
}

// Published in the abstracts of Hanayo (Liu et al., SC 2023), Chimera (Li, Hoefler, SC 2021) and of
// arXiv 2405.15362 (Qi et al.), whose V-Min takes a third of the memory and V-Half a half.
std::vector<ResultRow> list_others() {
  const EqualStages waves = drawn(8, 8);
  constexpr int kFourWaves = 8;  // chunks per device
  const EqualStages both_ways = halved(32, 32);
  const EqualStages memory = drawn(32, 64);
  const double held = time_schedule(memory, ScheduleKind::kOneForwardOneBackward).held;
  const std::string rounded = "32 devices; whole micro-batches, of which a share of 32 is";
  return {{"Hanayo over Chimera, at most", 1.304,
           quotient(time_schedule(waves, ScheduleKind::kChimera).makespan,
                    time_schedule(waves, ScheduleKind::kHanayo, kFourWaves).makespan),
           RowRole::kPrediction,
           "Chimera as the rival, 8 devices and micro-batches, four waves, F = I = W and free "
           "messages are assumed"},
          {"Chimera, idle time less than 1F1B's, at most", 0.5,
           1 - quotient(idle(both_ways, ScheduleKind::kChimera),
                        idle(both_ways, ScheduleKind::kOneForwardOneBackward)),
           RowRole::kPrediction, "32 devices and micro-batches, a backward as long as a forward"},
          {"V-Half, activations / those of 1F1B", 0.5,
           time_schedule(memory, ScheduleKind::kVHalf).held / held, RowRole::kPrediction,
           fmt::format("{} (p + 2) / 2", rounded)},
          {"V-Min, activations / those of 1F1B", 1.0 / 3,
           time_schedule(memory, ScheduleKind::kVMin).held / held, RowRole::kPrediction,
           fmt::format("{} (p + 4) / 3", rounded)}};
}

}  // namespace

ScheduleTimes time_schedule(const EqualStages& stages, ScheduleKind kind,
                            std::optional<int> chunks) {
  const WhatIf what_if{.stages = stages.devices,
                       .micro_batches = stages.micro_batches,
                       .schedule = kind,
                       .chunks = chunks,
                       .in_flight = std::nullopt,
                       .forward = {stages.forward},
                       .backward_input = {stages.backward_input},
                       .backward_weight = {stages.backward_weight},
                       .memory = std::nullopt,
                       .hop = stages.hop,
                       .search = std::nullopt};
  const WhatIfInputs inputs = make_what_if(what_if);
  const WhatIfAnswer answer = answer_what_if(inputs);
  const auto& peaks = answer.peak_chunks;
  const auto& named = std::get<NamedSchedule>(inputs.plan.schedule);
  return {answer.makespan, answer.span,
          static_cast<double>(*std::max_element(peaks.begin(), peaks.end())) / named.chunks};
}

std::optional<double> weight_ratio_for(double speed_up, int devices, int micro_batches) {
  const double slots = micro_batches + devices - 1;
  const double gained = slots - speed_up * micro_batches;
  if (gained <= 0) return std::nullopt;
  return slots * (speed_up - 1) / gained;
}

std::vector<ResultRow> list_schedule_headlines() {
  std::vector<ResultRow> rows = list_zero_bubble();
  rows.push_back(compare_two_bp());
  for (const auto& more : {compare_bitpipe(), list_others()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace frazil
