#include "tests/planner/support/order_reference.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

namespace frazil {
namespace {

using Key = std::tuple<int, int, int>;  // direction, stage, micro-batch

struct Reference {
  const OrderProblem& problem;
  Placement placement;
  std::map<Key, std::int64_t> forward, input, weight, recompute;  // ends

  std::int64_t length(const OrderedWork& work) const {
    const StageTimes& t = problem.times.at(static_cast<std::size_t>(work.stage));
    switch (work.kind) {
      case ActionKind::kForward:
      case ActionKind::kRecompute:
        return t.forward.count();
      case ActionKind::kBackwardInput:
        return t.backward_input.count();
      case ActionKind::kBackwardWeight:
        return t.backward_weight.count();
      case ActionKind::kBackward:
        return t.backward_input.count() + t.backward_weight.count();
      default:
        return 0;
    }
  }

  bool arrived(const std::map<Key, std::int64_t>& ends, Key key, int from, int to,
               std::int64_t& at) const {
    const auto end = ends.find(key);
    if (end == ends.end()) return false;
    at = std::max(at, end->second + (from == to ? 0 : problem.hop.count()));
    return true;
  }

  // True if the inputs of `work` are there; raises `at` to the time at which they are.
  bool ready(const OrderedWork& work, bool recomputes, std::int64_t& at) const {
    const auto [kind, pair, direction, stage, m] = work;
    const auto place = [this, direction = direction](int s) {
      return device_of_stage(placement, problem.devices, direction, s);
    };
    const int here = place(stage);
    switch (kind) {
      case ActionKind::kForward:
        return stage == 0 ||
               arrived(forward, {direction, stage - 1, m}, place(stage - 1), here, at);
      case ActionKind::kRecompute:
        return arrived(forward, {direction, stage, m}, here, here, at);
      case ActionKind::kBackwardWeight:
        return arrived(input, {direction, stage, m}, here, here, at);
      case ActionKind::kBackwardInput:
      case ActionKind::kBackward:
        if (recomputes && !arrived(recompute, {direction, stage, m}, here, here, at)) return false;
        return arrived(forward, {direction, stage, m}, here, here, at) &&
               (stage + 1 == problem.stages() ||
                arrived(input, {direction, stage + 1, m}, place(stage + 1), here, at));
      default:
        return true;
    }
  }

  void deliver(const OrderedWork& work, std::int64_t end) {
    const Key key{work.direction, work.stage, work.micro_batch};
    const auto put = [&](std::map<Key, std::int64_t>& ends) {
      if (!ends.emplace(key, end).second) throw std::runtime_error("done twice");
    };
    if (work.kind == ActionKind::kForward) put(forward);
    if (work.kind == ActionKind::kRecompute) put(recompute);
    if (work.kind == ActionKind::kBackwardInput || work.kind == ActionKind::kBackward) put(input);
    if (work.kind == ActionKind::kBackwardWeight || work.kind == ActionKind::kBackward) put(weight);
  }
};

std::string text_of(const OrderedWork& work) {
  std::string text = work.direction == 1 ? "'" : "";
  text += std::to_string(work.stage) + std::string(kind_name(work.kind));
  if (work.kind != ActionKind::kUpdate) text += std::to_string(work.micro_batch);
  return text;
}

void count_held(const DeviceOrder& order, ReferenceTimes& times) {
  int chunks = 0, halves = 0, most_chunks = 0, most_halves = 0;
  for (const OrderedWork& work : order) {
    if (work.kind == ActionKind::kForward) chunks += 1, halves += 2;
    if (work.kind == ActionKind::kBackward) chunks -= 1, halves -= 2;
    if (work.kind == ActionKind::kBackwardInput) halves -= 1;
    if (work.kind == ActionKind::kBackwardWeight) chunks -= 1, halves -= 1;
    most_chunks = std::max(most_chunks, chunks);
    most_halves = std::max(most_halves, halves);
  }
  times.peak_chunks.push_back(most_chunks);
  times.peak_half_chunks.push_back(most_halves);
}

}  // namespace

ReferenceTimes time_orders(const DeviceOrders& orders, const OrderProblem& problem,
                           Placement placement) {
  Reference reference{problem, placement, {}, {}, {}, {}};
  std::map<Key, bool> recomputes;
  for (const DeviceOrder& order : orders) {
    for (const OrderedWork& work : order) {
      if (work.kind == ActionKind::kRecompute) {
        recomputes[{work.direction, work.stage, work.micro_batch}] = true;
      }
    }
  }
  const auto has_recompute = [&](const OrderedWork& work) {
    return recomputes.count({work.direction, work.stage, work.micro_batch}) > 0;
  };
  ReferenceTimes times;
  std::vector<std::size_t> next(orders.size(), 0);
  std::vector<std::int64_t> free(orders.size(), 0), first(orders.size(), -1);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < orders.size(); ++d) {
      while (next[d] < orders[d].size()) {
        const OrderedWork& work = orders[d][next[d]];
        const std::size_t count = work.overlaps_next ? 2 : 1;
        std::int64_t start = free[d], length = 0;
        bool ready = true;
        for (std::size_t i = 0; i < count; ++i) {
          const OrderedWork& half = orders[d].at(next[d] + i);
          if (device_of_stage(placement, problem.devices, half.direction, half.stage) !=
              static_cast<int>(d)) {
            throw std::runtime_error(text_of(half) + " on device " + std::to_string(d));
          }
          ready = ready && reference.ready(half, has_recompute(half), start);
          length += reference.length(half);
        }
        if (!ready) break;
        for (std::size_t i = 0; i < count; ++i) {
          reference.deliver(orders[d][next[d] + i], start + length);
        }
        if (first[d] < 0) first[d] = start;
        free[d] = start + length;
        next[d] += count;
        moved = true;
      }
    }
  }
  std::string stuck;
  for (std::size_t d = 0; d < orders.size(); ++d) {
    if (next[d] < orders[d].size()) stuck += " " + text_of(orders[d][next[d]]);
  }
  if (!stuck.empty()) throw std::runtime_error("deadlock at" + stuck);
  const std::size_t expected =
      static_cast<std::size_t>(problem.stages()) * static_cast<std::size_t>(problem.micro_batches);
  if (reference.forward.size() != expected || reference.input.size() != expected ||
      reference.weight.size() != expected) {
    throw std::runtime_error("work is missing");
  }
  std::int64_t begin = -1;
  for (std::size_t d = 0; d < orders.size(); ++d) {
    times.makespan = std::max(times.makespan, free[d]);
    times.span = std::max(times.span, free[d] - first[d]);
    if (begin < 0 || first[d] < begin) begin = first[d];
    count_held(orders[d], times);
  }
  times.makespan -= std::max<std::int64_t>(begin, 0);
  return times;
}

int most(const std::vector<int>& peaks) { return *std::max_element(peaks.begin(), peaks.end()); }

std::string draw_orders(const DeviceOrders& orders) {
  std::string text;
  for (std::size_t d = 0; d < orders.size(); ++d) {
    text += "d" + std::to_string(d) + ":";
    for (std::size_t i = 0; i < orders[d].size(); ++i) {
      const OrderedWork& work = orders[d][i];
      if (work.overlaps_next) {
        text += " (" + text_of(work) + ";" + text_of(orders[d].at(++i)) + ")";
      } else {
        text += " " + text_of(work);
      }
    }
    text += "\n";
  }
  return text;
}

std::string find_out_of_turn(const DeviceOrders& orders) {
  std::map<std::tuple<ActionKind, int, int>, int> next;  // by kind, direction and stage
  for (const DeviceOrder& order : orders) {
    for (const OrderedWork& work : order) {
      if (work.micro_batch != next[{work.kind, work.direction, work.stage}]++) {
        return text_of(work);
      }
    }
  }
  return "";
}

}  // namespace frazil
