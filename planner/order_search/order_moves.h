#pragma once
// Small changes of an order, drawn at random: what a search of orders tries next. Half of them
// touch the longest path, for nothing else can shorten it.

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

  // Writes the next move into `move`; false where what was drawn changes nothing. One of
  //   neighbours change places
  //   one letter moves up to 12 places
  //   two letters up to 40 places apart change places
  //   a run of equal letters moves up to 12 places
  // `critical`: places on a longest path.
  bool draw(const OrderTiming& timing, std::span<const WordPlace> critical, OrderMove& move);

  // 0 .. size - 1.
  std::size_t below(std::size_t size);

 private:
  std::mt19937_64 random_;
};

}  // namespace frazil
