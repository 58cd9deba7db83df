#include "planner/orders/dualpipe_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

struct Chunk {
  int direction = 0;
  int stage = 0;
};

// The input of the eight steps for one device: p, r and m of the rule, and the device's two chunks.
struct EightSteps {
  int devices = 1;
  int device = 0;
  int micro_batches = 1;  // of each chunk
  std::array<Chunk, 2> chunks;
};

// Writes the list of one device. Each call takes the next micro-batch of its chunk.
class DualWriter {
 public:
  explicit DualWriter(const EightSteps& steps) : chunks_(steps.chunks) {
    // The list has all F, all B or I, and a W for each of the 2p-1-r I.
    const int work = 4 * steps.micro_batches + 2 * steps.devices - 1 - steps.device;
    order_.reserve(static_cast<std::size_t>(work));
    owed_.reserve(2 * static_cast<std::size_t>(steps.devices));
  }

  void forward(int chunk) { put(ActionKind::kForward, chunk, next_forward_); }
  void backward(int chunk) { put(ActionKind::kBackward, chunk, next_backward_); }
  void input(int chunk) {
    put(ActionKind::kBackwardInput, chunk, next_backward_);
    owed_.push_back(order_.back());
    owed_.back().kind = ActionKind::kBackwardWeight;
  }
  void weight() { order_.push_back(owed_[paid_++]); }
  void overlap(int forward_chunk, int backward_chunk) {
    forward(forward_chunk);
    order_.back().overlaps_next = true;
    backward(backward_chunk);
  }
  DeviceOrder take() { return std::move(order_); }

 private:
  void put(ActionKind kind, int chunk, std::array<int, 2>& next) {
    const auto c = static_cast<std::size_t>(chunk);
    order_.push_back({.kind = kind,
                      .direction = static_cast<std::int16_t>(chunks_[c].direction),
                      .stage = chunks_[c].stage,
                      .micro_batch = next[c]++});
  }

  std::array<Chunk, 2> chunks_;
  std::array<int, 2> next_forward_{};
  std::array<int, 2> next_backward_{};
  DeviceOrder owed_;  // W's of the I's so far; the first `paid_` are done
  std::size_t paid_ = 0;
  DeviceOrder order_;
};

DeviceOrder make_device_order(const EightSteps& steps) {
  const int after = steps.devices - 1 - steps.device;
  const int upto = steps.device + 1;
  DualWriter writer(steps);
  for (int i = 0; i < 2 * after; ++i) writer.forward(0);
  for (int i = 0; i < upto; ++i) writer.forward(0), writer.forward(1);
  for (int i = 0; i < after; ++i) writer.input(1), writer.weight(), writer.forward(1);
  for (int i = 0; i < steps.micro_batches - 2 * steps.devices + upto; ++i) {
    // The pipeline still fills here: apart from the backward, the first forward hands its output on
    // before that backward runs.
    if (i == 0 && after == 0) {
      writer.forward(0), writer.backward(1);
    } else {
      writer.overlap(0, 1);
    }
    writer.overlap(1, 0);
  }
  for (int i = 0; i < after; ++i) writer.backward(1), writer.overlap(1, 0);
  for (int i = 0; i < 2 * upto; ++i) {
    const int chunk = i % 2 == 0 ? 1 : 0;
    if (i < upto) writer.backward(chunk);
    if (i >= upto) writer.input(chunk);
  }
  for (int i = 0; i < after; ++i) writer.weight(), writer.input(0);
  for (int i = 0; i < upto; ++i) writer.weight();
  return writer.take();
}

EightSteps dualpipe_v_steps(const OrderProblem& problem, int device) {
  return {.devices = problem.devices,
          .device = device,
          .micro_batches = problem.micro_batches,
          .chunks = {Chunk{0, device}, Chunk{0, problem.stages() - 1 - device}}};
}

EightSteps dualpipe_steps(const OrderProblem& problem, int device) {
  const int mirrored = problem.devices - 1 - device;
  EightSteps steps{.devices = problem.devices / 2,
                   .device = std::min(device, mirrored),
                   .micro_batches = problem.micro_batches / 2,
                   .chunks = {Chunk{0, device}, Chunk{1, mirrored}}};
  if (device > mirrored) std::swap(steps.chunks[0], steps.chunks[1]);
  return steps;
}

void refuse_dual_problem(const OrderProblem& problem, std::string_view name) {
  ENSURE(problem.devices >= 1 && problem.micro_batches >= 1, "a device and a micro-batch");
  if (problem.micro_batches < 2 * problem.devices) {
    throw InfeasibleError(fmt::format("{} over {} devices takes at least {} micro-batches, not {}",
                                      name, problem.devices, 2 * problem.devices,
                                      problem.micro_batches));
  }
  if (problem.in_flight) {
    throw InfeasibleError(fmt::format(
        "{} holds {} chunks on each of {} devices by its own rule; in-flight {} is not defined for "
        "it",
        name, problem.stages() + 1, problem.devices, *problem.in_flight));
  }
}

void refuse_odd(int count, std::string_view noun) {
  if (count % 2 == 0) return;
  throw InfeasibleError(fmt::format("dualpipe takes an even number of {}, not {}", noun, count));
}

template <class StepsOfDevice>
DeviceOrders make_orders(const OrderProblem& problem, StepsOfDevice steps_of_device) {
  DeviceOrders orders;
  orders.reserve(static_cast<std::size_t>(problem.devices));
  for (int device = 0; device < problem.devices; ++device) {
    orders.push_back(make_device_order(steps_of_device(problem, device)));
  }
  return orders;
}

}  // namespace

DeviceOrders make_dualpipe_v_order(const OrderProblem& problem) {
  if (problem.chunks != 2) {
    throw InfeasibleError(fmt::format("dualpipev has 2 chunks per device, not {}", problem.chunks));
  }
  refuse_dual_problem(problem, "dualpipev");
  return make_orders(problem, dualpipe_v_steps);
}

DeviceOrders make_dualpipe_order(const OrderProblem& problem) {
  if (problem.chunks != 1) {
    throw InfeasibleError(
        fmt::format("dualpipe has 1 chunk per device and direction, not {}", problem.chunks));
  }
  refuse_odd(problem.devices, "devices");
  refuse_odd(problem.micro_batches, "micro-batches");
  refuse_dual_problem(problem, "dualpipe");
  return make_orders(problem, dualpipe_steps);
}

}  // namespace frazil
