#include "planner/plan/schedule_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "profiles/error.h"
#include "profiles/known_names.h"

namespace frazil {
namespace {

using Kind = ScheduleKind;
using Chunks = ScheduleFacts::Chunks;

constexpr auto kSchedules = std::to_array<ScheduleFacts>({
    {.kind = Kind::kGpipe,
     .name = "gpipe",
     .one_line = "all forwards, then all backwards",
     .takes_shared_stages = true,
     .takes_any_placement = true,
     .bounds = BoundClass::kTwoPhases},
    {.kind = Kind::kOneForwardOneBackward,
     .name = "1f1b",
     .one_line = "a backward as soon as there is one; p micro-batches in flight",
     .takes_in_flight = true,
     .takes_shared_stages = true,
     .bounds = BoundClass::kFalling},
    {.kind = Kind::kEagerOneForwardOneBackward,
     .name = "eager-1f1b",
     .one_line = "1f1b with 2p - 1 micro-batches in flight, which hides transfers",
     .takes_in_flight = true,
     .own_in_flight = {2, -1},
     .takes_shared_stages = true,
     .bounds = BoundClass::kFalling},
    {.kind = Kind::kInterleaved,
     .name = "interleaved-1f1b",
     .aliases = {"Interleaved1F1B"},
     .one_line = "1f1b over v chunks per device, in groups of p micro-batches: bubble / v",
     .placement = Placement::kLooped,
     .chunks = 2,
     .legal = Chunks::kAny},
    {.kind = Kind::kLoopedBfs,
     .name = "looped-bfs",
     .aliases = {"LoopedBFS"},
     .one_line = "gpipe over v chunks per device, breadth first",
     .placement = Placement::kLooped,
     .chunks = 2,
     .legal = Chunks::kAny,
     .bounds = BoundClass::kTwoPhases},
    {.kind = Kind::kZbH1,
     .name = "zb-h1",
     .one_line = "split backward in the memory of 1f1b: a third of its bubble",
     .takes_in_flight = true,
     .splits_backward = true,
     .takes_shared_stages = true,
     .bounds = BoundClass::kLevel},
    {.kind = Kind::kZbH2,
     .name = "zb-h2",
     .one_line = "split backward, 2p - 1 in flight: no bubble where updates need no barrier",
     .takes_in_flight = true,
     .own_in_flight = {2, -1},
     .splits_backward = true,
     .bounds = BoundClass::kLevel},
    {.kind = Kind::kZb1p,
     .name = "zb-1p",
     .one_line = "split backward, ordered by the times, p in flight (half of one is free after I)",
     .takes_in_flight = true,
     .splits_backward = true,
     .needs_costs = true,
     .bounds = BoundClass::kLevelInHalves},
    {.kind = Kind::kZb2p,
     .name = "zb-2p",
     .one_line = "split backward, ordered by the times, 2p in flight (half of one is free after I)",
     .takes_in_flight = true,
     .own_in_flight = {2, 0},
     .splits_backward = true,
     .needs_costs = true,
     .bounds = BoundClass::kLevelInHalves},
    {.kind = Kind::kZbV,
     .name = "zb-v",
     .aliases = {"ZBV", "ZBVZeroBubble"},
     .one_line = "ZB-V in PyTorch's fixed order: split backward, a V of two chunks, p in flight",
     .placement = Placement::kWave,
     .chunks = 2,
     .splits_backward = true},
    {.kind = Kind::kZbVAuto,
     .name = "zb-v-auto",
     .one_line = "ZB-V as its authors order it, by the times of the stages",
     .placement = Placement::kWave,
     .chunks = 2,
     .splits_backward = true,
     .needs_costs = true},
    {.kind = Kind::kVHalf,
     .name = "v-half",
     .one_line = "a V with half of 1f1b's activations",
     .placement = Placement::kWave,
     .chunks = 2,
     .splits_backward = true},
    {.kind = Kind::kVMin,
     .name = "v-min",
     .one_line = "a V with a third of 1f1b's activations",
     .placement = Placement::kWave,
     .chunks = 2,
     .splits_backward = true},
    {.kind = Kind::kInterleavedZb,
     .name = "interleaved-zb",
     .aliases = {"InterleavedZeroBubble"},
     .one_line = "interleaved with split backward",
     .placement = Placement::kLooped,
     .chunks = 2,
     .legal = Chunks::kAny,
     .splits_backward = true},
    {.kind = Kind::kDualPipe,
     .name = "dualpipe",
     .one_line = "two pipelines in opposite directions, forwards overlapped with backwards",
     .placement = Placement::kBothWays,
     .splits_backward = true},
    {.kind = Kind::kDualPipeV,
     .name = "dualpipev",
     .one_line = "dualpipe folded into a V: the parameters once",
     .placement = Placement::kWave,
     .chunks = 2,
     .splits_backward = true},
    {.kind = Kind::kChimera,
     .name = "chimera",
     .one_line = "two pipelines in opposite directions, in units of p micro-batches",
     .placement = Placement::kBothWays},
    {.kind = Kind::kBitPipe,
     .name = "bitpipe",
     .one_line = "two V pipelines in opposite directions",
     .placement = Placement::kWaveBothWays,
     .chunks = 2},
    {.kind = Kind::kHanayo,
     .name = "hanayo",
     .one_line = "waves over v = 2W chunks per device, backward first",
     .placement = Placement::kWave,
     .chunks = 2,
     .legal = Chunks::kEven},
    {.kind = Kind::kTwoBp,
     .name = "2bp",
     .one_line = "1f1b with I in place of B and all W at the end",
     .takes_in_flight = true,
     .splits_backward = true,
     .bounds = BoundClass::kWeightsLast},
    {.kind = Kind::kPipeDream,
     .name = "pipedream",
     .one_line = "1f1b with an update after every backward; a weight version per micro-batch",
     .takes_in_flight = true,
     .versions = WeightVersions::kStash},
    {.kind = Kind::kPipeDream2Bw,
     .name = "pipedream-2bw",
     .one_line = "1f1b with an update every p micro-batches; two weight versions",
     .takes_in_flight = true,
     .versions = WeightVersions::kTwoBuffered},
    {.kind = Kind::kVaruna,
     .name = "varuna",
     .one_line = "stage inputs alone are kept; each stage but the last recomputes",
     .recomputes_itself = true},
});

// A row is found by its enumerator.
constexpr bool is_in_order() {
  for (std::size_t at = 0; at < kSchedules.size(); ++at) {
    if (static_cast<std::size_t>(kSchedules[at].kind) != at) return false;
  }
  return true;
}
static_assert(is_in_order(), "rows in the order of the enumerators");

// Tells the aliases, for people: " (PyTorch: LoopedBFS)".
std::string also_known(const ScheduleFacts& facts) {
  std::string known;
  for (const std::string_view alias : facts.aliases) {
    if (!alias.empty()) known += (known.empty() ? "" : ", ") + std::string(alias);
  }
  return known.empty() ? "" : " (PyTorch: " + known + ")";
}

}  // namespace

bool has_linear_bounds(const ScheduleFacts& facts) {
  return facts.placement == Placement::kLinear && facts.bounds != BoundClass::kNone;
}

bool holds_level(const ScheduleFacts& facts) {
  return facts.bounds == BoundClass::kLevel || facts.bounds == BoundClass::kLevelInHalves;
}

std::span<const ScheduleFacts> all_schedules() { return kSchedules; }

const ScheduleFacts& facts_of(ScheduleKind kind) {
  const auto at = static_cast<std::size_t>(kind);
  ENSURE(at < kSchedules.size(), "a schedule without a row");
  return kSchedules[at];
}

std::vector<ScheduleKind> synchronous_schedules() {
  std::vector<ScheduleKind> kinds;
  for (const ScheduleFacts& facts : kSchedules) {
    if (facts.versions == WeightVersions::kSync) kinds.push_back(facts.kind);
  }
  return kinds;
}

std::string_view schedule_name(ScheduleKind kind) { return facts_of(kind).name; }

std::optional<ScheduleKind> find_schedule(std::string_view name) {
  constexpr std::string_view kClass = "Schedule";  // PyTorch's classes begin so: ScheduleGPipe
  if (is_same_name(name.substr(0, kClass.size()), kClass)) name.remove_prefix(kClass.size());
  if (name.empty()) return std::nullopt;
  for (const ScheduleFacts& facts : kSchedules) {
    const auto is_meant = [&](std::string_view known) { return is_same_name(known, name); };
    if (is_meant(facts.name)) return facts.kind;
    if (std::any_of(facts.aliases.begin(), facts.aliases.end(), is_meant)) return facts.kind;
  }
  return std::nullopt;
}

std::vector<std::string_view> all_schedule_names() {
  std::vector<std::string_view> names;
  for (const ScheduleFacts& facts : kSchedules) names.push_back(facts.name);
  for (const ScheduleFacts& facts : kSchedules) {
    std::copy_if(facts.aliases.begin(), facts.aliases.end(), std::back_inserter(names),
                 [](std::string_view alias) { return !alias.empty(); });
  }
  return names;
}

std::string describe_schedules(bool synchronous_alone) {
  std::string lines;
  for (const ScheduleFacts& facts : kSchedules) {
    if (synchronous_alone && facts.versions != WeightVersions::kSync) continue;
    lines += fmt::format("{:<17} {}{}\n", facts.name, facts.one_line, also_known(facts));
  }
  return lines;
}

}  // namespace frazil
