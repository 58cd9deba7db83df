#pragma once
// What tests of device orders are asked with: problems of equal stages or drawn ones, named in a
// line, and what is asked of every generator alike.

#include <concepts>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <type_traits>

#include "planner/orders/device_order.h"

namespace frazil {

using Random = std::mt19937_64;
using OrderGenerator = DeviceOrders (*)(const OrderProblem&);

// low..high, the same with every C++ library, as <random> does not promise for its distributions.
template <std::integral Low, std::integral High>
std::common_type_t<Low, High> draw(Random& random, Low low, High high) {
  using Drawn = std::common_type_t<Low, High>;
  const auto size = static_cast<std::uint64_t>(static_cast<Drawn>(high) - low + 1);
  return static_cast<Drawn>(low + static_cast<Drawn>(random() % size));
}

StageTimes make_times(std::int64_t forward, std::int64_t input, std::int64_t weight);

// Without times; with F, I and W of 1 for every stage; with these times of one device's share of
// one micro-batch, chunk c of v getting floor((c+1) t / v) - floor(c t / v). A schedule that runs
// both ways has its chunks per direction.
OrderProblem make_bare_problem(int devices, int chunks, int micro_batches);
OrderProblem make_unit_problem(int devices, int chunks, int micro_batches);
OrderProblem make_order_problem(int devices, int chunks, int micro_batches, StageTimes device_share,
                                Duration hop = Duration{0});

// "p=4 v=1 m=8 K=4 c=0 1/1/1 ..": K where it is given, F/I/W by stage.
std::string describe(const OrderProblem& problem);

// Equal stages: p devices with v chunks, m micro-batches, the times F, I, W of one device's share
// of a micro-batch and c of a hop.
struct EqualStages {
  std::int64_t p = 1, v = 1, m = 1, f = 1, i = 1, w = 1, c = 0;

  std::int64_t t() const { return f + i + w; }
  OrderProblem problem() const;
};

// 500 cases, or until one fails; `narrow` moves each into the conditions of a formula, `check` says
// what holds there.
void for_drawn_stages(std::uint64_t seed, const std::function<EqualStages(Random&)>& draw_stages,
                      const std::function<void(Random&, EqualStages&)>& narrow,
                      const std::function<void(const EqualStages&)>& check);
inline void as_it_is(Random&, EqualStages&) {}  // a `narrow` that takes any case

// The sentence of the InfeasibleError, or "made".
std::string refusal(OrderGenerator make, const OrderProblem& problem);

// The part of `time` that is not `work`: "12.6".
std::string idle_percent(std::int64_t time, Duration work);

}  // namespace frazil
