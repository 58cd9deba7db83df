#pragma once
// Draws small changes of an order at random: what a search of orders tries next. Half of the
// changes touch the longest path, for nothing else can shorten it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "planner/order_search/order_timing.h"

namespace frazil {

// New letters for a part of one word, as many of each as before.
struct OrderMove {
  std::size_t stage = 0;
  std::size_t first = 0;
  std::vector<Letter> letters;
};

class MoveMaker {
 public:
  explicit MoveMaker(std::uint64_t seed) : random_(seed) {}

  // clang-format off
  // Draws a move into `move`; false if what was drawn changes nothing. `critical`: places on a
  // longest path, at least one. A move is one of
  //   neighbours change places
  //   one letter moves up to 12 places
  //   two letters up to 40 places apart change places
  //   a run of equal letters moves up to 12 places
  // clang-format on
  bool draw(const OrderTiming& timing, std::span<const WordPlace> critical, OrderMove& move);

  // Returns a random number in 0 .. size - 1.
  std::size_t below(std::size_t size);

 private:
  std::mt19937_64 random_;
};

}  // namespace frazil
