#pragma once
// Answers what-ifs without a file: p devices, the times of one device's share of one micro-batch,
// and a hop (latency between devices). Builds a synthetic profile (one layer per stage, and before
// them a layer without cost, so that the first stage has an I (dgrad) like any other), a cluster of
// pure-latency links, and a plan. If a device has v chunks, chunk c takes
//   floor((c+1) t / v) - floor(c t / v)
// of each time t.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/order_search/order_search.h"
#include "planner/plan/plan.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/what_if/held_bytes.h"

namespace frazil {

struct WhatIf {
  int stages = 1;  // devices p
  int micro_batches = 1;
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  std::optional<int> chunks;     // v per direction; none: the schedule's own
  std::optional<int> in_flight;  // K; none: the schedule's own
  // Times of F, I (dgrad) and W (wgrad): one value for all devices, or one per device.
  std::vector<Duration> forward;
  std::vector<Duration> backward_input;
  std::vector<Duration> backward_weight;
  bool backward_was_split = false;  // I and W are the halves of one time, by rule
  std::optional<WhatIfMemory> memory;
  Duration hop{0};  // pure latency between different devices, no link occupancy
  // If set, the order is searched instead, within what `schedule` may hold.
  std::optional<OrderSearchOptions> search;
};

std::string_view schedule_name(const WhatIf& what_if);  // "1f1b", "search"

// The note below an answer whose I and W are halves of one time.
inline constexpr std::string_view kSplitNote =
    "note: I and W are half of --backward each, by rule, not measured\n";

// The most stages that a what-if has, each chunk counted.
inline constexpr int kMostWhatIfStages = 4096;

struct WhatIfInputs {
  ModelProfile profile;
  Cluster cluster;
  Plan plan;
};

// Builds the inputs. Throws InputError{"command line", 0} for lists of a wrong length, nothing to
// do, times that add up past 2^62 ns, chunks or a number in flight that the schedule does not have,
// and the like; InfeasibleError for a time per device if the schedule has each stage on two
// devices.
WhatIfInputs make_what_if(const WhatIf& what_if);

struct WhatIfAnswer {
  Duration makespan{0};
  Duration span{0};        // the longest of any device, from first start to last end
  double bubble = 0;       // 1 - busy / (p x makespan)
  double bubble_span = 0;  // 1 - busy / (p x span)
  // Most chunks in flight, by device: +1 at F, -1 at W or B, F before B inside a pair.
  std::vector<int> peak_chunks;
  std::vector<Bytes> peak_bytes;  // by device, if the question has sizes
  PlanBounds bounds;
  LowerBound any_plan;                      // planner/prediction/any_plan_bound.h
  std::optional<std::int64_t> moves_tried;  // if the order was searched
};

// Searches the order and gives it to the plan of `inputs`, if the question asks for that; else
// returns none. Throws what search_order() in planner/order_search/searched_plan.h throws.
std::optional<SearchedOrder> search_what_if(const WhatIf& what_if, WhatIfInputs& inputs);

// Simulates compute and hops alone: no reductions and no updates but those of the schedule itself.
SimulatedStep simulate_what_if(const WhatIfInputs& inputs);
// Returns the figures of a simulated step. 32 devices and 1024 micro-batches take milliseconds.
WhatIfAnswer answer_what_if(const WhatIfInputs& inputs, const SimulatedStep& step,
                            const std::optional<SearchedOrder>& searched = {},
                            const std::optional<WhatIfMemory>& memory = {});
WhatIfAnswer answer_what_if(const WhatIfInputs& inputs,
                            const std::optional<WhatIfMemory>& memory = {});

}  // namespace frazil
