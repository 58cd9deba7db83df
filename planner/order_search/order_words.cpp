#include "planner/order_search/order_words.h"

#include <array>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::array<ActionKind, kLetters> kKinds{ActionKind::kForward, ActionKind::kBackwardInput,
                                                  ActionKind::kBackwardWeight};

}  // namespace

Words to_words(const DeviceOrders& orders) {
  Words words;
  for (const DeviceOrder& order : orders) {
    Word& word = words.emplace_back();
    for (const OrderedWork& work : order) {
      if (work.kind == ActionKind::kForward) {
        word.push_back(Letter::kF);
        continue;
      }
      const bool is_whole = work.kind == ActionKind::kBackward;
      ENSURE(is_whole || work.kind == kKinds[1] || work.kind == kKinds[2], "F, I, W and B");
      if (is_whole || work.kind == ActionKind::kBackwardInput) word.push_back(Letter::kI);
      if (is_whole || work.kind == ActionKind::kBackwardWeight) word.push_back(Letter::kW);
    }
  }
  return words;
}

DeviceOrders to_orders(const Words& words) {
  DeviceOrders orders(words.size());
  for (std::size_t s = 0; s < words.size(); ++s) {
    std::array<std::int32_t, kLetters> done{};
    for (const Letter letter : words[s]) {
      const std::size_t kind = index_of(letter);
      orders[s].push_back({kKinds[kind], false, 0, static_cast<std::int32_t>(s), done[kind]++});
    }
  }
  return orders;
}

}  // namespace frazil
