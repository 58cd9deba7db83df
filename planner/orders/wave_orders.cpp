#include "planner/orders/wave_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// Writes the list of one device of a V. Each call takes the next micro-batch of its kind on its
// chunk. Micro-batches that the problem does not have are counted, so that the pattern goes on, but
// not written.
class WaveWriter {
 public:
  WaveWriter(const OrderProblem& problem, int device)
      : micro_batches_(problem.micro_batches), stages_{device, problem.stages() - 1 - device} {
    order_.reserve(6 * static_cast<std::size_t>(micro_batches_));
  }

  void forward(int chunk) { put(ActionKind::kForward, chunk); }
  void input(int chunk) { put(ActionKind::kBackwardInput, chunk); }
  void weight(int chunk) { put(ActionKind::kBackwardWeight, chunk); }
  DeviceOrder take() { return std::move(order_); }

 private:
  void put(ActionKind kind, int chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    const int micro_batch = next_[static_cast<std::size_t>(kind)][c]++;
    if (micro_batch < micro_batches_) {
      order_.push_back({.kind = kind, .stage = stages_[c], .micro_batch = micro_batch});
    }
  }

  int micro_batches_;
  std::array<int, 2> stages_;
  std::array<std::array<int, 2>, kActionKinds> next_{};  // by kind and chunk
  DeviceOrder order_;
};

DeviceOrder make_device_order(const OrderProblem& problem, int device) {
  const int before = device;
  const int rest = problem.devices - device;
  const int micro_batches = std::max(2 * problem.devices - 1, problem.micro_batches);
  const int first_forwards = 2 * rest - 1 + before;
  WaveWriter writer(problem, device);
  const auto backward = [&](int chunk) { writer.input(chunk), writer.weight(chunk); };
  for (int i = 0; i < 2 * rest - 1; ++i) writer.forward(0);
  for (int i = 0; i < before; ++i) writer.forward(1), writer.forward(0);
  for (int i = 0; i < rest; ++i) writer.forward(1), backward(1);
  for (int i = 0; i < micro_batches - problem.devices; ++i) {
    if (first_forwards + i < micro_batches) writer.forward(0);
    backward(0), writer.forward(1), backward(1);
  }
  for (int i = 0; i < before; ++i) writer.input(0), writer.input(1);
  for (int i = 0; i < rest; ++i) backward(0);
  for (int i = 0; i < before; ++i) writer.weight(1);
  for (int i = 0; i < before; ++i) writer.weight(0);
  return writer.take();
}

}  // namespace

void refuse_what_zb_v_is_not(const OrderProblem& problem, std::string_view name) {
  ENSURE(problem.devices >= 1 && problem.micro_batches >= 1, "a device and a micro-batch");
  if (problem.chunks != 2) {
    throw InfeasibleError(fmt::format("{} has 2 chunks per device, not {}", name, problem.chunks));
  }
  if (problem.in_flight) {
    throw InfeasibleError(
        fmt::format("{} holds as many micro-batches as there are devices, {}; in-flight {} is "
                    "not defined for it",
                    name, problem.devices, *problem.in_flight));
  }
}

DeviceOrders make_zb_v_order(const OrderProblem& problem) {
  refuse_what_zb_v_is_not(problem, "zb-v");
  DeviceOrders orders;
  orders.reserve(static_cast<std::size_t>(problem.devices));
  for (int device = 0; device < problem.devices; ++device) {
    orders.push_back(make_device_order(problem, device));
  }
  return orders;
}

}  // namespace frazil
