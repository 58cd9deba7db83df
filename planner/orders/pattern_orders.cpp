#include "planner/orders/pattern_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "planner/orders/wave_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kPeriod = 6;  // F, I and W of two chunks

using Part = WavePart;

struct Cell {
  Part part = Part::kNone;
  std::int32_t micro_batch = 0;
};
using SlotLine = std::vector<Cell>;  // of a device, by slot

std::size_t index(int value) { return static_cast<std::size_t>(value); }

// The slots of a leg: it takes slot first + per_device i on device i.
struct LegSlots {
  int first = 0;
  int per_device = 1;
};
using BuildingBlock = std::array<LegSlots, kWaveLegs>;

BuildingBlock v_half_block(int p) {
  const int q = p % 2 == 0 ? 3 : 0;
  return {LegSlots{0, 2}, {3 * p - 2, -1}, {3 * p + q - 1, 2}, {6 * p + q - 2, -1}};
}

BuildingBlock v_min_block(int p) {
  const int q = p % 3 == 0 ? 2 : 0;
  return {LegSlots{0, 1}, {2 * p - 1, -1}, {2 * p + q, 1}, {4 * p + q - 1, -1}};
}

// Calls use(device, slot, cell) by slot, then by device.
template <class Use>
void visit_by_slot(const std::vector<SlotLine>& lines, Use use) {
  std::size_t slots = 0;
  for (const SlotLine& line : lines) slots = std::max(slots, line.size());
  for (std::size_t slot = 0; slot < slots; ++slot) {
    for (std::size_t device = 0; device < lines.size(); ++device) {
      if (slot >= lines[device].size()) continue;
      use(static_cast<int>(device), static_cast<int>(slot), lines[device][slot]);
    }
  }
}

// Gives each W the first slot that is free after its I.
void place_weights(SlotLine& line) {
  std::array<int, 2> owed{};  // of chunk 1, of chunk 0
  std::array<int, 2> next{};
  for (std::size_t slot = 0; slot < line.size() || owed[0] + owed[1] > 0; ++slot) {
    if (slot == line.size()) line.emplace_back();
    Cell& cell = line[slot];
    if (cell.part == Part::kI1) ++owed[0];
    if (cell.part == Part::kI0) ++owed[1];
    if (cell.part != Part::kNone || owed[0] + owed[1] == 0) continue;
    const std::size_t which = owed[0] > 0 ? 0 : 1;
    --owed[which];
    cell = {which == 0 ? Part::kW1 : Part::kW0, next[which]++};
  }
}

enum class Weights : std::uint8_t { kPlaced, kImplied };  // implied: a free slot runs an owed W

// The load of a device before a slot.
struct Load {
  int held = 0;  // chunk-micro-batches
  int owed = 0;  // held ones whose I has run and whose W has not
};

Load after(Load load, Part part, Weights weights) {
  const bool implied = part == Part::kNone && weights == Weights::kImplied && load.owed > 0;
  if (part == Part::kF0 || part == Part::kF1) ++load.held;
  if (part == Part::kI0 || part == Part::kI1) ++load.owed;
  if (is_weight(part) || implied) --load.held, --load.owed;
  return load;
}

int most_held(const std::vector<SlotLine>& lines, Weights weights) {
  int most = 0;
  for (const SlotLine& line : lines) {
    Load load;
    for (const Cell& cell : line) {
      load = after(load, cell.part, weights);
      most = std::max(most, load.held);
    }
  }
  return most;
}

// The load curve of a line: its load before every slot, as far as the line is settled.
class LoadCurve {
 public:
  LoadCurve(const SlotLine& line, Weights weights, int limit)
      : line_(line), weights_(weights), limit_(limit), loads_{Load{}} {
    loads_.reserve(line.size() + 1);
  }

  // Notes that slots first .. last are final. Requires: the slots before `first` are final already.
  void settle(int first, int last) {
    loads_.resize(index(first) + 1);
    for (int slot = first; slot <= last; ++slot) {
      const Part part = line_[index(slot)].part;
      loads_.push_back(after(loads_.back(), part, weights_));
      if (is_weight(part)) behind_weights_ = slot + 1;
    }
  }

  // True if `part` may run in the free slot `to` instead of the later slot `from`. The load behind
  // `from` cannot rise: the same F have run there, and no fewer W.
  bool allows(Part part, int to, int from) const {
    Load load = after(loads_[index(to)], part, weights_);
    for (int slot = to + 1; slot < from && load.held <= limit_; ++slot) {
      load = after(load, line_[index(slot)].part, weights_);
    }
    return load.held <= limit_;
  }

  // Returns the first slot behind all W's so far at which another W is owed.
  int first_for_weight() const {
    int slot = behind_weights_;
    while (loads_[index(slot)].owed == 0) ++slot;
    return slot;
  }

 private:
  const SlotLine& line_;
  Weights weights_;
  int limit_;
  int behind_weights_ = 0;
  std::vector<Load> loads_;
};

// The lines of all devices, and the slot of each step of each micro-batch. A micro-batch makes 4p
// steps in turn: step (leg p + i) runs on device i going down the V, on device p-1-i coming up.
class SlotTable {
 public:
  SlotTable(const BuildingBlock& block, int devices, int micro_batches)
      : devices_(devices), micro_batches_(micro_batches), lines_(index(devices)) {
    slots_.resize(index(kWaveLegs * devices) * index(micro_batches));
    for (int device = 0; device < devices; ++device) {
      for (int leg = 0; leg < kWaveLegs; ++leg) {
        const int first = block[index(leg)].first + block[index(leg)].per_device * device;
        for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
          put(device, first + kPeriod * micro_batch, {static_cast<Part>(leg), micro_batch});
        }
      }
    }
  }

  void place_all_weights() {
    for (SlotLine& line : lines_) place_weights(line);
  }

  // Moves work into earlier free slots; if the W's are implied, only work after the steady part.
  void move_earlier(Weights weights) {
    const int limit = most_held(lines_, weights);
    const int steady_first = slot_of(kWaveLegs * devices_ - 1, 0);
    const int steady_last = slot_of(0, micro_batches_ - 1);
    std::vector<LoadCurve> curves;
    curves.reserve(lines_.size());
    for (const SlotLine& line : lines_) curves.emplace_back(line, weights, limit);
    visit_by_slot(lines_, [&](int device, int slot, Cell cell) {
      // Both bounds are slots of device 0, the first device in a slot.
      const bool before = slot < steady_first;
      const bool behind = slot > steady_last || (slot == steady_last && device > 0);
      const bool may_move = behind || (before && weights == Weights::kPlaced);
      LoadCurve& curve = curves[index(device)];
      if (may_move && cell.part != Part::kNone) move(device, slot, curve);
      curve.settle(slot, slot);
    });
  }

  // Keeps the order of each device, W's included, and starts all work as early as it can, taking
  // one slot each. The W's are gone afterwards.
  void start_early() {
    std::vector<SlotLine> ordered(lines_.size());
    ordered.swap(lines_);
    std::vector<int> free(ordered.size(), 0);
    visit_by_slot(ordered, [&](int device, int, Cell cell) {
      if (cell.part == Part::kNone) return;
      int& start = free[index(device)];
      if (is_leg(cell.part)) {
        start = std::max(start, slot_before(device, cell) + 1);
        put(device, start, cell);
      }
      ++start;
    });
  }

  DeviceOrders read() const {
    DeviceOrders orders(lines_.size());
    for (DeviceOrder& order : orders) order.reserve(index(kPeriod * micro_batches_));
    visit_by_slot(lines_, [&](int device, int, Cell cell) {
      if (cell.part == Part::kNone) return;
      orders[index(device)].push_back({.kind = kind_of(cell.part),
                                       .stage = stage_of(cell.part, device, devices_),
                                       .micro_batch = cell.micro_batch});
    });
    return orders;
  }

 private:
  int step_of(int device, Part part) const {
    const int leg = static_cast<int>(part);
    return leg * devices_ + (leg % 2 == 0 ? device : devices_ - 1 - device);
  }
  int& slot_of(int step, int micro_batch) {
    return slots_[index(step) * index(micro_batches_) + index(micro_batch)];
  }
  // Returns the slot of the step before that of a leg; -1 if the leg's step is the first.
  int slot_before(int device, Cell leg) {
    const int step = step_of(device, leg.part);
    return step == 0 ? -1 : slot_of(step - 1, leg.micro_batch);
  }

  void put(int device, int slot, Cell cell) {
    SlotLine& line = lines_[index(device)];
    if (line.size() <= index(slot)) line.resize(index(slot) + 1);
    ENSURE(line[index(slot)].part == Part::kNone, "two works in one slot of a pattern");
    line[index(slot)] = cell;
    if (is_leg(cell.part)) slot_of(step_of(device, cell.part), cell.micro_batch) = slot;
  }

  void move(int device, int slot, LoadCurve& curve) {
    SlotLine& line = lines_[index(device)];
    const Cell cell = line[index(slot)];
    for (int to = first_for(device, cell, curve); to < slot; ++to) {
      if (line[index(to)].part != Part::kNone || !curve.allows(cell.part, to, slot)) continue;
      line[index(slot)] = {};
      put(device, to, cell);
      curve.settle(to, slot - 1);
      return;
    }
  }

  // Returns the first slot behind the work that `cell` depends on.
  int first_for(int device, Cell cell, const LoadCurve& curve) {
    if (is_weight(cell.part)) return curve.first_for_weight();
    const int above = slot_before(device, cell);
    if (cell.micro_batch == 0) return above + 1;
    return std::max(above, slot_of(step_of(device, cell.part), cell.micro_batch - 1)) + 1;
  }

  int devices_;
  int micro_batches_;
  std::vector<SlotLine> lines_;
  std::vector<int> slots_;  // by step and micro-batch
};

DeviceOrders make_pattern_order(const OrderProblem& problem, const BuildingBlock& block) {
  SlotTable table(block, problem.devices, problem.micro_batches);
  table.place_all_weights();
  table.move_earlier(Weights::kPlaced);
  table.start_early();
  table.move_earlier(Weights::kImplied);
  table.place_all_weights();
  table.start_early();
  table.place_all_weights();
  return table.read();
}

void refuse_v_problem(const OrderProblem& problem, std::string_view name) {
  ENSURE(problem.devices >= 1 && problem.micro_batches >= 1, "a device and a micro-batch");
  if (problem.chunks != 2) {
    throw InfeasibleError(fmt::format("{} has 2 chunks per device, not {}", name, problem.chunks));
  }
  if (problem.in_flight) {
    throw InfeasibleError(
        fmt::format("{} holds what its pattern needs; in-flight {} is not defined for it", name,
                    *problem.in_flight));
  }
}

}  // namespace

DeviceOrders make_v_half_order(const OrderProblem& problem) {
  refuse_v_problem(problem, "v-half");
  return make_pattern_order(problem, v_half_block(problem.devices));
}

DeviceOrders make_v_min_order(const OrderProblem& problem) {
  refuse_v_problem(problem, "v-min");
  return make_pattern_order(problem, v_min_block(problem.devices));
}

}  // namespace frazil
