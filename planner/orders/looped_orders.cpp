#include "planner/orders/looped_orders.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

// A place in the sequence of forwards; with the chunks reversed, a place in that of backwards.
struct Turn {
  int chunk = 0;
  int micro_batch = 0;
};

std::vector<Turn> list_turns(const OrderProblem& problem, int groups) {
  std::vector<Turn> turns;
  turns.reserve(static_cast<std::size_t>(problem.micro_batches) *
                static_cast<std::size_t>(problem.chunks));
  int first = 0;
  for (; groups > 0; --groups) {
    const int end = first + divide_up(problem.micro_batches - first, groups);
    for (int chunk = 0; chunk < problem.chunks; ++chunk) {
      for (int i = first; i < end; ++i) turns.push_back({chunk, i});
    }
    first = end;
  }
  return turns;
}

DeviceOrder list_device(const OrderProblem& problem, const std::vector<Turn>& turns, int device,
                        const DeviceRule& rule) {
  DeviceOrder order;
  order.reserve(turns.size() * (rule.weight_lag ? 3 : 2));
  const auto append = [&](ActionKind kind, std::size_t index) {
    const Turn& turn = turns[index];
    const bool forward = kind == ActionKind::kForward;
    const int chunk = forward ? turn.chunk : problem.chunks - 1 - turn.chunk;
    order.push_back(
        {.kind = kind, .stage = chunk * problem.devices + device, .micro_batch = turn.micro_batch});
  };
  const bool split = rule.weight_lag.has_value();
  const std::size_t count = turns.size();
  const auto at_most_all = [&](int part) {
    return std::min(count, static_cast<std::size_t>(part));
  };
  const std::size_t first = at_most_all(rule.forwards_first);
  const std::size_t lag = at_most_all(rule.weight_lag.value_or(0));
  for (std::size_t i = 0; i < first; ++i) append(ActionKind::kForward, i);
  for (std::size_t i = 0; i < count; ++i) {
    append(split ? ActionKind::kBackwardInput : ActionKind::kBackward, i);
    if (split && i >= lag) append(ActionKind::kBackwardWeight, i - lag);
    if (i + first < count) append(ActionKind::kForward, i + first);
  }
  for (std::size_t i = count - lag; split && i < count; ++i) {
    append(ActionKind::kBackwardWeight, i);
  }
  return order;
}

int count_groups(const OrderProblem& problem, int group) {
  ENSURE(problem.devices >= 1 && group >= 1, "a group of micro-batches over devices");
  const int p = problem.devices;
  const int m = problem.micro_batches;
  if (group < p && group < m) {
    throw InfeasibleError(fmt::format(
        "an interleaved schedule over {} devices takes groups of at least {} micro-batches, not "
        "{}: shorter ones can wait for each other",
        p, p, group));
  }
  return std::max(1, std::min(divide_up(m, group), m / p));
}

// Starts a device with `per_device` more forwards for each device after it: 2 for the way down and
// back, 1 if W fills the way back.
DeviceOrders make_interleaved(const OrderProblem& problem, int group, int per_device, bool split) {
  const int groups = count_groups(problem, group);
  const int longest = divide_up(problem.micro_batches, groups);
  std::vector<DeviceRule> rules;
  rules.reserve(static_cast<std::size_t>(problem.devices));
  for (int device = 0; device < problem.devices; ++device) {
    const int after = problem.devices - 1 - device;
    rules.push_back({(problem.chunks - 1) * longest + per_device * after + 1,
                     split ? std::optional<int>(device) : std::nullopt});
  }
  return make_looped_orders(problem, groups, rules);
}

}  // namespace

DeviceOrders make_looped_orders(const OrderProblem& problem, int groups,
                                const std::vector<DeviceRule>& rules) {
  ENSURE(problem.chunks >= 1 && problem.micro_batches >= 0 && groups >= 1, "a looped problem");
  ENSURE(rules.size() == static_cast<std::size_t>(problem.devices), "a rule for each device");
  const std::vector<Turn> turns = list_turns(problem, groups);
  DeviceOrders orders;
  orders.reserve(rules.size());
  for (int device = 0; device < problem.devices; ++device) {
    orders.push_back(list_device(problem, turns, device, rules[static_cast<std::size_t>(device)]));
  }
  return orders;
}

DeviceOrders make_interleaved_order(const OrderProblem& problem, int group) {
  return make_interleaved(problem, group, 2, false);
}

DeviceOrders make_interleaved_zb_order(const OrderProblem& problem, int group) {
  return make_interleaved(problem, group, 1, true);
}

}  // namespace frazil
