#include "planner/order_search/order_moves.h"

#include <algorithm>
#include <utility>

namespace frazil {
namespace {

constexpr std::size_t kFarthestMove = 12;
constexpr std::size_t kFarthestExchange = 40;

// Makes the move by which [begin, middle) and [middle, end) change places.
void rotate(std::span<const Letter> word, std::size_t begin, std::size_t middle, std::size_t end,
            OrderMove& move) {
  const auto place = [&](std::size_t i) { return word.begin() + static_cast<std::ptrdiff_t>(i); };
  move.first = begin;
  move.letters.assign(place(middle), place(end));
  move.letters.insert(move.letters.end(), place(begin), place(middle));
}

bool exchange(std::span<const Letter> word, std::size_t first, std::size_t second,
              OrderMove& move) {
  if (second >= word.size() || word[first] == word[second]) return false;
  const auto begin = word.begin() + static_cast<std::ptrdiff_t>(first);
  move.first = first;
  move.letters.assign(begin, begin + static_cast<std::ptrdiff_t>(second - first + 1));
  std::swap(move.letters.front(), move.letters.back());
  return true;
}

// Makes the move by which [begin, end) goes `distance` places on, or back; false at that end of the
// word.
bool shift(std::span<const Letter> word, std::size_t begin, std::size_t end, bool is_back,
           std::size_t distance, OrderMove& move) {
  if (is_back) {
    if (begin == 0) return false;
    rotate(word, begin - std::min(begin, distance), begin, end, move);
  } else {
    if (end == word.size()) return false;
    rotate(word, begin, end, std::min(word.size(), end + distance), move);
  }
  return true;
}

}  // namespace

std::size_t MoveMaker::below(std::size_t size) {
  return static_cast<std::size_t>((random_() >> 32) * size >> 32);
}

bool MoveMaker::draw(const OrderTiming& timing, std::span<const WordPlace> critical,
                     OrderMove& move) {
  const WordPlace place = below(2) == 0 ? critical[below(critical.size())]
                                        : WordPlace{below(timing.stages()), below(timing.length())};
  const std::span<const Letter> word = timing.word(place.stage);
  move.stage = place.stage;
  const std::size_t at = place.position;
  const bool is_back = below(2) == 0;
  switch (below(4)) {
    case 0:
      return exchange(word, at, at + 1, move);
    case 1:
      return shift(word, at, at + 1, is_back, 1 + below(kFarthestMove), move);
    case 2:
      return exchange(word, at, at + 1 + below(kFarthestExchange), move);
    default: {
      std::size_t begin = at;
      std::size_t end = at + 1;
      while (begin > 0 && word[begin - 1] == word[at]) --begin;
      while (end < word.size() && word[end] == word[at]) ++end;
      return shift(word, begin, end, is_back, 1 + below(kFarthestMove), move);
    }
  }
}

}  // namespace frazil
