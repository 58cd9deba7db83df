#include "planner/orders/shared_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>

#include "planner/orders/looped_orders.h"
#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Places = std::vector<StagePlaces>;

// Returns how many devices of a stage take micro-batches in turn.
std::int64_t turns_of(const StagePlaces& stage) {
  return stage.is_sliced ? 1 : static_cast<std::int64_t>(stage.devices.size());
}

// Returns for each stage the turns of all stages after it, A_s of the header.
std::vector<std::int64_t> count_later(const Places& places) {
  std::vector<std::int64_t> later(places.size(), 0);
  for (std::size_t s = places.size() - 1; s > 0; --s) {
    later[s - 1] = later[s] + turns_of(places[s]);
  }
  return later;
}

// Finds for the devices of each stage how many forwards come first, and when the W come.
std::vector<DeviceRule> find_rules(const ScheduleFacts& facts, const OrderProblem& problem,
                                   const Places& places) {
  const std::vector<std::int64_t> later = count_later(places);
  const std::int64_t all_later = later.front();
  const std::int64_t first_devices = turns_of(places.front());
  // `ahead` counts the micro-batches in flight in the first stage besides one per device.
  std::int64_t ahead = facts.own_in_flight.on(1 + static_cast<int>(all_later)) - 1;
  if (problem.in_flight) ahead = (std::int64_t{*problem.in_flight} - 1) * first_devices;
  std::vector<DeviceRule> rules;
  std::int64_t least_sent = std::numeric_limits<std::int64_t>::max();  // before a backward
  for (std::size_t s = 0; s < places.size(); ++s) {
    const std::int64_t devices = turns_of(places[s]);
    const std::int64_t wanted =
        all_later == 0 ? 1 + ahead / first_devices
                       : 1 + divide_up<std::int64_t>(ahead * later[s], all_later * devices);
    const std::int64_t first = std::min(wanted, 1 + (least_sent - 1) / devices);
    least_sent = std::min(least_sent, first * devices);
    const std::int64_t held = divide_up<std::int64_t>(ahead + first_devices, devices);
    const auto at_most_all = [&](std::int64_t count) {
      return static_cast<int>(std::clamp<std::int64_t>(count, 0, problem.micro_batches));
    };
    rules.push_back({at_most_all(first), std::nullopt});
    if (facts.splits_backward) rules.back().weight_lag = at_most_all(held - first);
  }
  return rules;
}

// Makes the list of device `turn` of the `turns` devices of a stage. The device works on every
// turns-th micro-batch, under its rule.
DeviceOrder make_list(std::size_t stage, std::size_t turn, std::int64_t turns, int micro_batches,
                      const DeviceRule& rule) {
  const auto d = static_cast<int>(turns);
  const auto first = static_cast<int>(turn);
  OrderProblem own;
  own.micro_batches = divide_up(std::max(0, micro_batches - first), d);
  if (own.micro_batches <= 0) return {};
  DeviceOrder order = make_looped_orders(own, 1, {rule}).front();
  for (OrderedWork& work : order) {
    work.stage = static_cast<std::int32_t>(stage);
    work.micro_batch = first + work.micro_batch * d;
  }
  return order;
}

DeviceOrders make_gpipe_anywhere(const OrderProblem& problem, const Places& places) {
  DeviceOrders orders(static_cast<std::size_t>(problem.devices));
  const auto append = [&](std::size_t stage, ActionKind kind) {
    const auto& [devices, is_sliced] = places[stage];
    for (int m = 0; m < problem.micro_batches; ++m) {
      OrderedWork work;
      work.kind = kind;
      work.stage = static_cast<std::int32_t>(stage);
      work.micro_batch = m;
      const std::size_t turn = static_cast<std::size_t>(m) % devices.size();
      for (std::size_t d = 0; d < devices.size(); ++d) {
        if (is_sliced || d == turn) orders[static_cast<std::size_t>(devices[d])].push_back(work);
      }
    }
  };
  for (std::size_t s = 0; s < places.size(); ++s) append(s, ActionKind::kForward);
  for (std::size_t s = places.size(); s > 0; --s) append(s - 1, ActionKind::kBackward);
  return orders;
}

DeviceOrders make_linear_family(const ScheduleFacts& facts, const OrderProblem& problem,
                                const Places& places) {
  const std::vector<DeviceRule> rules = find_rules(facts, problem, places);
  DeviceOrders orders(static_cast<std::size_t>(problem.devices));
  for (std::size_t s = 0; s < places.size(); ++s) {
    for (std::size_t d = 0; d < places[s].devices.size(); ++d) {
      DeviceOrder& order = orders.at(static_cast<std::size_t>(places[s].devices[d]));
      ENSURE(order.empty(), "one stage per device");
      order = make_list(s, places[s].is_sliced ? 0 : d, turns_of(places[s]), problem.micro_batches,
                        rules[s]);
    }
  }
  return orders;
}

}  // namespace

DeviceOrders make_shared_orders(ScheduleKind kind, const OrderProblem& problem,
                                const Places& places) {
  const ScheduleFacts& facts = facts_of(kind);
  ENSURE(facts.takes_shared_stages && !places.empty(), "a schedule of stages on several devices");
  switch (facts.bounds) {
    case BoundClass::kTwoPhases:
      return make_gpipe_anywhere(problem, places);
    case BoundClass::kFalling:
    case BoundClass::kLevel:
      return make_linear_family(facts, problem, places);
    case BoundClass::kNone:
    case BoundClass::kLevelInHalves:
    case BoundClass::kWeightsLast:
      break;
  }
  throw std::logic_error(fmt::format("{} has no rule for stages on several devices", facts.name));
}

}  // namespace frazil
