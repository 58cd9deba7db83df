#pragma once
// The input and the output of a schedule generator. A generator sees pipelines as numbers: p
// devices, v chunks of the model on each device, m micro-batches. It makes one list of compute work
// per device, over stages 0..S-1 (S = p v) and micro-batches counted from 0 in each direction.
// Schedules whose model runs both ways over the devices have two directions with m / 2
// micro-batches each; the stages of a direction are counted along its own way.
// planner/schedules/make_schedule.h gives the lists the names of a plan.

#include <cstdint>
#include <optional>
#include <vector>

#include "profiles/units.h"
#include "traces/action.h"

namespace frazil {

// The times of one stage for one micro-batch: F, I (dgrad) and W (wgrad).
struct StageTimes {
  Duration forward{0};
  Duration backward_input{0};
  Duration backward_weight{0};

  Duration total() const { return forward + backward_input + backward_weight; }
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

struct OrderProblem {
  int devices = 1;               // p
  int chunks = 1;                // v, stages of each direction per device
  int micro_batches = 1;         // m, of all directions together
  std::optional<int> in_flight;  // K, micro-batches in flight; none: the schedule's own
  // The generators that decide by cost read `times`, by stage (empty: not known), and `hop`, the
  // longest time of a message between two stages.
  std::vector<StageTimes> times;
  Duration hop{0};

  int stages() const { return devices * chunks; }
};

// F, I, W or B; R and U only if the schedule itself places them (Varuna, PipeDream). An F that
// `overlaps_next` forms a pair with the B or I after it.
struct OrderedWork {
  ActionKind kind = ActionKind::kForward;
  bool overlaps_next = false;
  std::int16_t direction = 0;
  std::int32_t stage = 0;
  std::int32_t micro_batch = 0;
  friend bool operator==(const OrderedWork&, const OrderedWork&) = default;
};

using DeviceOrder = std::vector<OrderedWork>;
using DeviceOrders = std::vector<DeviceOrder>;  // by device 0..p-1

}  // namespace frazil
