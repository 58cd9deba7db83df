#include "tests/planner/support/order_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frazil {

StageTimes make_times(std::int64_t forward, std::int64_t input, std::int64_t weight) {
  return {Duration{forward}, Duration{input}, Duration{weight}};
}

OrderProblem make_bare_problem(int devices, int chunks, int micro_batches) {
  OrderProblem problem;
  problem.devices = devices;
  problem.chunks = chunks;
  problem.micro_batches = micro_batches;
  return problem;
}

OrderProblem make_unit_problem(int devices, int chunks, int micro_batches) {
  return make_order_problem(devices, chunks, micro_batches, make_times(chunks, chunks, chunks));
}

OrderProblem make_order_problem(int devices, int chunks, int micro_batches, StageTimes device_share,
                                Duration hop) {
  OrderProblem problem = make_bare_problem(devices, chunks, micro_batches);
  problem.hop = hop;
  const auto part = [&](Duration t, int chunk) {
    return t * (chunk + 1) / chunks - t * chunk / chunks;
  };
  for (int stage = 0; stage < problem.stages(); ++stage) {
    const int c = stage / devices;
    problem.times.push_back({part(device_share.forward, c), part(device_share.backward_input, c),
                             part(device_share.backward_weight, c)});
  }
  return problem;
}

std::string describe(const OrderProblem& problem) {
  std::string text =
      fmt::format("p={} v={} m={}", problem.devices, problem.chunks, problem.micro_batches);
  if (problem.in_flight) text += fmt::format(" K={}", *problem.in_flight);
  text += fmt::format(" c={}", problem.hop.count());
  for (const StageTimes& times : problem.times) {
    text += fmt::format(" {}/{}/{}", times.forward.count(), times.backward_input.count(),
                        times.backward_weight.count());
  }
  return text;
}

OrderProblem EqualStages::problem() const {
  return make_order_problem(static_cast<int>(p), static_cast<int>(v), static_cast<int>(m),
                            make_times(f, i, w), Duration{c});
}

void for_drawn_stages(std::uint64_t seed, const std::function<EqualStages(Random&)>& draw_stages,
                      const std::function<void(Random&, EqualStages&)>& narrow,
                      const std::function<void(const EqualStages&)>& check) {
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    EqualStages x = draw_stages(random);
    narrow(random, x);
    SCOPED_TRACE(fmt::format("seed {} draw {}: p={} v={} m={} F={} I={} W={} c={}", seed, i, x.p,
                             x.v, x.m, x.f, x.i, x.w, x.c));
    check(x);
    if (testing::Test::HasFailure()) return;
  }
}

std::string refusal(OrderGenerator make, const OrderProblem& problem) {
  try {
    make(problem);
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "made";
}

std::string idle_percent(std::int64_t time, Duration work) {
  const auto idle = static_cast<double>(time - work.count());
  return fmt::format("{:.1f}", 100 * idle / static_cast<double>(time));
}

}  // namespace frazil
