#pragma once
// Makes problems of device orders for tests, equal stages or drawn ones, names them in a line, and
// asks every generator the same questions.

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

// Draws from low..high, the same with every C++ library, which <random> does not promise for its
// distributions.
template <std::integral Low, std::integral High>
std::common_type_t<Low, High> draw(Random& random, Low low, High high) {
  using Drawn = std::common_type_t<Low, High>;
  const auto size = static_cast<std::uint64_t>(static_cast<Drawn>(high) - low + 1);
  return static_cast<Drawn>(low + static_cast<Drawn>(random() % size));
}

StageTimes make_times(std::int64_t forward, std::int64_t input, std::int64_t weight);

// Makes a problem without times; with F, I and W of 1 for every stage; or with the given times of
// one device's share of a micro-batch, of which chunk c of v gets floor((c+1) t / v) - floor(c t /
// v). In a schedule that runs both ways the chunks are per direction.
OrderProblem make_bare_problem(int devices, int chunks, int micro_batches);
OrderProblem make_unit_problem(int devices, int chunks, int micro_batches);
OrderProblem make_order_problem(int devices, int chunks, int micro_batches, StageTimes device_share,
                                Duration hop = Duration{0});

// Describes a problem as "p=4 v=1 m=8 K=4 c=0 1/1/1 ..": K if it is given, F/I/W by stage.
std::string describe(const OrderProblem& problem);

// A problem of equal stages: p devices with v chunks, m micro-batches, the times F, I, W of one
// device's share of a micro-batch and c of a hop.
struct EqualStages {
  std::int64_t p = 1, v = 1, m = 1, f = 1, i = 1, w = 1, c = 0;

  std::int64_t t() const { return f + i + w; }
  OrderProblem problem() const;
};

// Draws 500 cases, or until one fails; `narrow` moves each into the conditions of a formula, and
// `check` says what holds there.
void for_drawn_stages(std::uint64_t seed, const std::function<EqualStages(Random&)>& draw_stages,
                      const std::function<void(Random&, EqualStages&)>& narrow,
                      const std::function<void(const EqualStages&)>& check);
inline void as_it_is(Random&, EqualStages&) {}  // a `narrow` that takes any case

// Returns the sentence of the InfeasibleError, or "made".
std::string refusal(OrderGenerator make, const OrderProblem& problem);

// Returns the part of `time` that is not `work`, in percent, such as "12.6".
std::string idle_percent(std::int64_t time, Duration work);

}  // namespace frazil
