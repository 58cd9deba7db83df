#include "planner/orders/linear_orders.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "planner/orders/looped_orders.h"
#include "profiles/error.h"

namespace frazil {
namespace {

DeviceOrders make_linear_order(const OrderProblem& problem, int in_flight, bool split) {
  ENSURE(problem.chunks == 1, "a linear schedule has one chunk per device");
  std::vector<DeviceRule> rules;
  rules.reserve(static_cast<std::size_t>(problem.devices));
  for (int stage = 0; stage < problem.devices; ++stage) {
    const int first = warm_up(in_flight, problem.devices, stage);
    rules.push_back({first, split ? std::optional<int>(in_flight - first) : std::nullopt});
  }
  return make_looped_orders(problem, 1, rules);
}

}  // namespace

int warm_up(int in_flight, int devices, int stage) {
  ENSURE(in_flight >= 1 && 0 <= stage && stage < devices, "a stage with micro-batches in flight");
  if (devices == 1) return in_flight;
  const std::int64_t others = devices - 1;
  const std::int64_t after = others - stage;
  return static_cast<int>(1 + divide_up((in_flight - 1) * after, others));
}

DeviceOrders make_gpipe_order(const OrderProblem& problem) {
  const DeviceRule all_first{problem.micro_batches * problem.chunks, std::nullopt};
  const std::vector<DeviceRule> rules(static_cast<std::size_t>(problem.devices), all_first);
  return make_looped_orders(problem, 1, rules);
}

DeviceOrders make_one_forward_one_backward_order(const OrderProblem& problem,
                                                 int default_in_flight) {
  return make_linear_order(problem, problem.in_flight.value_or(default_in_flight), false);
}

DeviceOrders make_split_linear_order(const OrderProblem& problem, int default_in_flight) {
  return make_linear_order(problem, problem.in_flight.value_or(default_in_flight), true);
}

DeviceOrders make_two_bp_order(const DeviceOrders& host) {
  DeviceOrders orders;
  orders.reserve(host.size());
  for (const DeviceOrder& host_order : host) {
    DeviceOrder& order = orders.emplace_back();
    DeviceOrder weights;
    order.reserve(host_order.size() / 2 * 3);
    weights.reserve(host_order.size() / 2);
    for (OrderedWork work : host_order) {
      if (work.kind == ActionKind::kBackward) {
        work.kind = ActionKind::kBackwardWeight;
        weights.push_back(work);
        work.kind = ActionKind::kBackwardInput;
      }
      order.push_back(work);
    }
    order.insert(order.end(), weights.begin(), weights.end());
  }
  return orders;
}

DeviceOrders make_pipedream_order(const OrderProblem& problem, int interval) {
  ENSURE(interval >= 1, "an update follows at least one backward");
  DeviceOrders orders = make_one_forward_one_backward_order(problem, problem.devices);
  for (DeviceOrder& order : orders) {
    DeviceOrder updated;
    updated.reserve(order.size() * 2);
    for (const OrderedWork& work : order) {
      updated.push_back(work);
      if (work.kind != ActionKind::kBackward) continue;
      const int done = work.micro_batch + 1;
      if (done % interval != 0 && done != problem.micro_batches) continue;
      updated.push_back(work);
      updated.back().kind = ActionKind::kUpdate;
    }
    order = std::move(updated);
  }
  return orders;
}

}  // namespace frazil
