#pragma once
// An order of linear stages as words: what each device does in turn, F, I or W. Micro-batches run
// in the order 0 .. m-1 within each kind (planner/prediction/linear_bounds.h says why no other
// sequence is better), so the kinds say all.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/orders/device_order.h"

namespace frazil {

enum class Letter : std::uint8_t { kF, kI, kW };
inline constexpr std::size_t kLetters = 3;
constexpr std::size_t index_of(Letter letter) { return static_cast<std::size_t>(letter); }

using Word = std::vector<Letter>;
using Words = std::vector<Word>;  // by stage

// Converts orders to words, where a B is an I and its W. Requires: one chunk per device, and only
// F, I, W and B.
Words to_words(const DeviceOrders& orders);
DeviceOrders to_orders(const Words& words);

}  // namespace frazil
