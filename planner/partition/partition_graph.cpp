#include "planner/partition/partition_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Order = std::vector<std::size_t>;

constexpr std::size_t kMostExtra = 4;  // parts beyond a beginning of an order
constexpr int kMostRounds = 8;

// Orders the parts depth first from the last part back to what it needs: a branch is done before
// the next begins.
class DepthFirst {
 public:
  DepthFirst(const PartGraph& graph, bool is_reversed)
      : graph_(graph), is_reversed_(is_reversed), seen_(graph.parts.size()) {}

  Order order() {
    for (std::size_t p = 0; p < graph_.parts.size(); ++p) {
      if (graph_.parts[p].after.empty()) visit(p);
    }
    return std::move(order_);
  }

 private:
  // Visits a part without recursion, for graphs may be deep.
  void visit(std::size_t start) {
    std::vector<std::pair<std::size_t, std::size_t>> stack{{start, 0}};
    if (std::exchange(seen_[start], 1) != 0) return;
    while (!stack.empty()) {
      auto& [part, next] = stack.back();
      const std::vector<std::size_t>& before = graph_.parts[part].before;
      if (next == before.size()) {
        order_.push_back(part);
        stack.pop_back();
        continue;
      }
      const std::size_t other = before[is_reversed_ ? before.size() - 1 - next : next];
      ++next;
      if (std::exchange(seen_[other], 1) == 0) stack.emplace_back(other, 0);
    }
  }

  const PartGraph& graph_;
  bool is_reversed_;
  std::vector<char> seen_;
  Order order_;
};

class Partitioner {
 public:
  Partitioner(const WorkGraph& graph, const SplitLimits& limits)
      : graph_(graph),
        limits_(limits),
        whole_(contract(graph)),
        parts_(merge_free_parts(whole_, graph.device_memory)),
        relief_(parts_),
        devices_(std::min(graph.devices, static_cast<int>(parts_.parts.size()))),
        hosts_(std::min(graph.hosts, static_cast<int>(parts_.parts.size()))),
        most_ideals_(limits.ideals / (static_cast<std::size_t>(hosts_) + 1)) {
    Order numbers(parts_.parts.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    orders_ = {numbers, DepthFirst(parts_, false).order(), DepthFirst(parts_, true).order()};
    ideals_ = list_ideals(parts_, numbers, parts_.parts.size(), most_ideals_);
  }

  GraphPartition partition() {
    refuse_parts_without_a_place();
    Answer best = answer_for(devices_);
    // If the lower bound for fewer devices is at or above the answer, no such split is better.
    for (int devices = devices_ - 1; devices >= 0 && !is_proven(best); --devices) {
      const WorkTime bound = bound_load(parts_, relief_, devices, hosts_);
      if (bound == WorkTime::max() || (best.split && bound >= best.split->load)) break;
      Answer fewer = answer_for(devices);
      if (fewer.split && (!best.split || fewer.split->load <= best.split->load)) {
        best.split = std::move(fewer.split);
      }
    }
    if (!best.split) refuse(best);
    return describe(best);
  }

 private:
  struct Answer {
    std::optional<Split> split;
    WorkTime lower_bound{0};
  };

  static bool is_proven(const Answer& answer) {
    return answer.split ? answer.lower_bound >= answer.split->load
                        : answer.lower_bound == WorkTime::max();
  }

  void refuse_parts_without_a_place() const {
    for (const Part& part : parts_.parts) {
      const bool fits = part.runs_on_device && part.memory <= graph_.device_memory;
      if ((graph_.devices > 0 && fits) || graph_.hosts > 0) continue;
      const std::string& name = graph_.nodes[part.nodes.front()].name;
      if (graph_.devices == 0) throw InfeasibleError("there is neither a device nor a host core");
      if (!part.runs_on_device) {
        throw InfeasibleError(
            fmt::format("node `{}` runs on a host core only, and there is none", name));
      }
      throw InfeasibleError(fmt::format(
          "node `{}` and the {} that must stay with it need {}, but a device holds {}", name,
          part.nodes.size() - 1, to_text(part.memory), to_text(graph_.device_memory)));
    }
  }

  [[noreturn]] void refuse(const Answer& answer) const {
    if (answer.lower_bound == WorkTime::max()) {
      throw InfeasibleError(fmt::format("no contiguous split over {} devices of {} fits",
                                        graph_.devices, to_text(graph_.device_memory)));
    }
    throw InfeasibleError(fmt::format(
        "no split that fits was found among {} stages looked at; --states allows more", states_));
  }

  SplitDevices machines(int devices) const { return {devices, hosts_, graph_.device_memory}; }

  // Replaces the answer's split if the family has a better one. The lower bound is raised by a
  // complete family alone, for the bound of any other holds for nothing but the family's own
  // splits.
  void improve(Answer& answer, const IdealLattice& family, const SplitDevices& machines,
               std::int64_t& states) {
    const WorkTime ceiling = answer.split ? answer.split->load : kLongestWork;
    BestSplit found =
        find_best_split(parts_, family, machines, answer.lower_bound, ceiling, states);
    if (found.split) answer.split = std::move(found.split);
    if (family.is_complete) answer.lower_bound = std::max(answer.lower_bound, found.lower_bound);
  }

  Answer answer_for(int devices) {
    const SplitDevices machines = this->machines(devices);
    std::int64_t states = limits_.states;
    Answer answer;
    answer.lower_bound = bound_load(parts_, relief_, devices, hosts_);
    Order order = orders_.front();
    for (const Order& candidate : orders_) {
      const auto before = answer.split;
      improve(answer, *list_ideals(parts_, candidate, 0, parts_.parts.size() + 1), machines,
              states);
      if (answer.split != before) order = candidate;
    }
    if (ideals_) {
      improve(answer, *ideals_, machines, states);
      if (answer.split && answer.lower_bound >= answer.split->load) {
        // A split that one order found first may use more devices than it needs.
        auto fewest = find_split(parts_, *ideals_, machines, answer.split->load, states);
        if (fewest) answer.split = std::move(fewest);
        answer.lower_bound = answer.split->load;
      }
    } else {
      improve_in_rounds(answer, std::move(order), machines, states);
    }
    states_ += limits_.states - std::max<std::int64_t>(states, 0);
    return answer;
  }

  void improve_in_rounds(Answer& answer, Order order, const SplitDevices& machines,
                         std::int64_t& states) {
    for (int round = 0; round < kMostRounds && states > 0 && !is_proven(answer); ++round) {
      const IdealLattice family = list_near(order);
      listed_ = std::max(listed_, static_cast<std::size_t>(family.size()));
      const auto before = answer.split;
      // A round gets half of the states that are left: refusals cost more than answers, and the
      // next order may do better.
      std::int64_t share = states / 2 + 1;
      states -= share;
      improve(answer, family, machines, share);
      states += std::max<std::int64_t>(share, 0);
      if (!answer.split || answer.split == before) return;
      order = along(*answer.split, order);
    }
  }

  // Lists ideals near an order, with as many parts beyond its beginnings as the limit allows.
  IdealLattice list_near(const Order& order) const {
    IdealLattice best = *list_ideals(parts_, order, 0, parts_.parts.size() + 1);
    for (std::size_t extra = 1; extra <= kMostExtra; ++extra) {
      auto more = list_ideals(parts_, order, extra, most_ideals_);
      if (!more) break;
      best = std::move(*more);
    }
    return best;
  }

  // Returns an order with the stages one after another, each in the order before.
  Order along(const Split& split, const Order& before) const {
    std::vector<std::size_t> stage_of(parts_.parts.size());
    for (std::size_t s = 0; s < split.stages.size(); ++s) {
      for (const std::size_t part : split.stages[s].parts) stage_of[part] = s;
    }
    Order order = before;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return stage_of[a] < stage_of[b]; });
    return order;
  }

  GraphPartition describe(const Answer& answer) const {
    GraphPartition result;
    int used = 0;
    for (const SplitStage& split : answer.split->stages) {
      GraphStage stage{{}, split.is_host, split.work, split.transfer, split.memory};
      for (const std::size_t p : split.parts) {
        const Part& part = parts_.parts[p];
        stage.nodes.insert(stage.nodes.end(), part.nodes.begin(), part.nodes.end());
      }
      std::sort(stage.nodes.begin(), stage.nodes.end());
      used += split.is_host ? 0 : 1;
      result.stages.push_back(std::move(stage));
    }
    result.load = answer.split->load;
    result.lower_bound = std::min(answer.lower_bound, result.load);
    result.idle_devices = graph_.devices - used;
    result.parts = whole_.parts.size();
    result.ideals = ideals_ ? static_cast<std::size_t>(ideals_->size()) : listed_;
    result.has_all_ideals = ideals_.has_value();
    result.states = states_;
    if (result.idle_devices > 0) {
      result.idle_reason = find_idle_reason(*answer.split, result.is_optimal());
    }
    return result;
  }

  IdleReason find_idle_reason(const Split& split, bool is_optimal) const {
    if (split.stages.size() == parts_.parts.size()) return IdleReason::kNoPartLeft;
    if (!is_optimal) return IdleReason::kNotProven;
    if (keeps_on_host(split)) return IdleReason::kDeviceMemory;
    const bool is_part_alone =
        std::any_of(split.stages.begin(), split.stages.end(), [&](const SplitStage& stage) {
          return stage.load() == split.load && stage.parts.size() == 1;
        });
    return is_part_alone ? IdleReason::kPartAlone : IdleReason::kTransfersCostMore;
  }

  // True if host cores hold nothing but parts that no device can run or has the memory for, and
  // some of the latter.
  bool keeps_on_host(const Split& split) const {
    bool some = false;
    for (const SplitStage& stage : split.stages) {
      if (!stage.is_host) continue;
      for (const std::size_t p : stage.parts) {
        const Part& part = parts_.parts[p];
        if (!part.runs_on_device) continue;
        if (part.memory <= graph_.device_memory) return false;
        some = true;
      }
    }
    return some;
  }

  const WorkGraph& graph_;
  const SplitLimits& limits_;
  PartGraph whole_;
  PartGraph parts_;
  HostRelief relief_;
  int devices_;  // no more than could hold a part each
  int hosts_;
  std::size_t most_ideals_;  // each is looked at for each number of hosts
  std::vector<Order> orders_;
  std::optional<IdealLattice> ideals_;  // all, where they can be listed
  std::size_t listed_ = 0;
  std::int64_t states_ = 0;
};

}  // namespace

GraphPartition partition_graph(const WorkGraph& graph, const SplitLimits& limits) {
  return Partitioner(graph, limits).partition();
}

std::string to_sentence(IdleReason reason) {
  switch (reason) {
    case IdleReason::kNone:
      return "none is idle";
    case IdleReason::kNoPartLeft:
      return "each part that must stay whole has a device of its own";
    case IdleReason::kDeviceMemory:
      return "no device has the memory for any of the parts that the host holds";
    case IdleReason::kPartAlone:
      return "the most loaded device holds one part, which must stay whole";
    case IdleReason::kTransfersCostMore:
      return "every further cut costs more transfer than it saves";
    case IdleReason::kNotProven:
      return "no better split was found within the states allowed";
  }
  return "";
}

}  // namespace frazil
