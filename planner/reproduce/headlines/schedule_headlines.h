#pragma once
// Headlines of papers about schedules, as far as what was published gives their inputs: devices,
// micro-batches, and the times of F, I and W of one device's share of a micro-batch. Each is
// simulated as a what-if (planner/what_if/what_if.h), with equal stages, without reductions and
// updates. Messages cost their latency where it was published and nothing where it was not.
// ZB-H1, ZB-2p and ZB-V are timed by span, since their optimizer step has no barrier; all others by
// makespan.

#include <optional>
#include <vector>

#include "planner/plan/schedule_kind.h"
#include "planner/reproduce/result_table.h"
#include "profiles/units.h"

namespace frazil {

struct EqualStages {
  int devices = 1;
  int micro_batches = 1;
  Duration forward{0};
  Duration backward_input{0};
  Duration backward_weight{0};
  Duration hop{0};
};

struct ScheduleTimes {
  Duration makespan{0};
  Duration span{0};
  double held = 0;  // most micro-batches in flight on a device, by its full share
};

// Times a schedule with its own number of chunks per device, or with `chunks`.
ScheduleTimes time_schedule(const EqualStages& stages, ScheduleKind kind,
                            std::optional<int> chunks = std::nullopt);

// Returns the ratio r = W / (F + I) at which 2BP is `speed_up` times as fast as 1F1B: the r for
// which
//   speed_up = (m + p - 1) (1 + r) / ((m + p - 1) + m r)
// None if no ratio is enough.
std::optional<double> weight_ratio_for(double speed_up, int devices, int micro_batches);

// Zero bubble, 2BP, BitPipe, Hanayo, Chimera, V-Half and V-Min.
std::vector<ResultRow> list_schedule_headlines();

}  // namespace frazil
