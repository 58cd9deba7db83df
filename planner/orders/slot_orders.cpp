#include "planner/orders/slot_orders.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "planner/plan/placement.h"
#include "profiles/error.h"

namespace frazil {
namespace {

std::size_t place(int value) { return static_cast<std::size_t>(value); }

// The work of a device by slot; a slot that is not set stays free (micro-batch -1).
using Line = std::vector<OrderedWork>;

void put(Line& line, int slot, const OrderedWork& work) {
  ENSURE(line[place(slot)].micro_batch < 0, "two works in one slot");
  line[place(slot)] = work;
}

DeviceOrders make_slot_order(const OrderProblem& problem, Placement placement) {
  const int p = problem.devices;
  const int stages = problem.stages();
  const int units = problem.micro_batches / p;
  // The last slot belongs to the B of the last micro-batch on stage 0.
  const int slots = 2 * stages * units + p - 2;
  std::vector<Line> lines(place(p), Line(place(slots), OrderedWork{.micro_batch = -1}));
  for (int direction = 0; direction < directions(placement); ++direction) {
    for (int stage = 0; stage < stages; ++stage) {
      Line& line = lines[place(device_of_stage(placement, p, direction, stage))];
      for (int micro_batch = 0; micro_batch < problem.micro_batches / 2; ++micro_batch) {
        const int start = 2 * stages * (micro_batch / (p / 2)) + 2 * (micro_batch % (p / 2));
        OrderedWork work{.kind = ActionKind::kForward,
                         .direction = static_cast<std::int16_t>(direction),
                         .stage = stage,
                         .micro_batch = micro_batch};
        put(line, start + stage, work);
        work.kind = ActionKind::kBackward;
        put(line, start + 2 * stages - 1 - stage, work);
      }
    }
  }
  for (Line& line : lines) {
    std::erase_if(line, [](const OrderedWork& work) { return work.micro_batch < 0; });
  }
  return lines;
}

void refuse_two_way_problem(const OrderProblem& problem, std::string_view name, int chunks) {
  ENSURE(problem.devices >= 1 && problem.micro_batches >= 1, "a device and a micro-batch");
  if (problem.chunks != chunks) {
    throw InfeasibleError(fmt::format("{} has {} chunk{} per device and direction, not {}", name,
                                      chunks, chunks == 1 ? "" : "s", problem.chunks));
  }
  if (problem.devices % 2 != 0) {
    throw InfeasibleError(
        fmt::format("{} takes an even number of devices, not {}", name, problem.devices));
  }
  if (problem.micro_batches % problem.devices != 0) {
    throw InfeasibleError(
        fmt::format("{} over {} devices takes a multiple of {} micro-batches, not {}", name,
                    problem.devices, problem.devices, problem.micro_batches));
  }
  if (problem.in_flight) {
    throw InfeasibleError(
        fmt::format("{} holds what its slots need; in-flight {} is not defined for it", name,
                    *problem.in_flight));
  }
}

}  // namespace

DeviceOrders make_chimera_order(const OrderProblem& problem) {
  refuse_two_way_problem(problem, "chimera", 1);
  return make_slot_order(problem, Placement::kBothWays);
}

DeviceOrders make_bitpipe_order(const OrderProblem& problem) {
  refuse_two_way_problem(problem, "bitpipe", 2);
  return make_slot_order(problem, Placement::kWaveBothWays);
}

}  // namespace frazil
