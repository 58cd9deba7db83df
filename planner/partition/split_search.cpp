#include "planner/partition/split_search.h"

#include <algorithm>
#include <limits>

#include "planner/partition/stage_load.h"

namespace frazil {
namespace {

constexpr std::int32_t kUnreached = std::numeric_limits<std::int32_t>::max();

class SplitSearch {
 public:
  SplitSearch(const PartGraph& graph, const IdealLattice& lattice, const SplitDevices& machines,
              std::int64_t& states)
      : graph_(graph),
        lattice_(lattice),
        machines_(machines),
        states_(states),
        relief_(graph),
        stage_(graph),
        full_(lattice.size() - 1),
        done_(static_cast<std::size_t>(lattice.size())),
        seen_(static_cast<std::size_t>(lattice.size())) {
    for (std::int32_t ideal = 0; ideal <= full_; ++ideal) {
      for (std::size_t p = 0; p < graph.parts.size(); ++p) {
        const Part& part = graph.parts[p];
        if (part.runs_on_device && lattice.holds(ideal, p)) done_[index(ideal)] += part.load;
      }
    }
  }

  bool is_out_of_states() const { return states_ <= 0; }
  // Returns the smallest limit above the last one that may change a refusal.
  WorkTime next_limit() const { return next_; }

  std::optional<Split> ask(WorkTime limit) {
    limit_ = limit;
    next_ = WorkTime::max();
    reached_.assign((static_cast<std::size_t>(machines_.hosts) + 1) * done_.size(), {});
    std::vector<State> level{{0, 0}};
    reached_[0].devices = 0;
    for (std::int32_t devices = 0; !level.empty(); ++devices) {
      next_level_.clear();
      for (std::size_t i = 0; i < level.size(); ++i) {  // hosts add to the level itself
        const State state = level[i];
        if (is_dominated(state)) continue;
        if (state.hosts < machines_.hosts) grow_on_host(state, level);
        // Once an answer with one device more is known, only an answer without that device is
        // looked for.
        if (devices < machines_.devices && !find_full(devices + 1)) grow_on_device(state);
        if (is_out_of_states()) return std::nullopt;
        const auto end = find_full(machines_.hosts == 0 ? devices + 1 : devices);
        if (end) return trace_back(*end);
      }
      if (const auto end = find_full(devices + 1)) return trace_back(*end);
      level = next_level_;
    }
    return std::nullopt;
  }

 private:
  struct State {
    std::int32_t ideal = 0;
    int hosts = 0;  // used so far
  };
  struct Reach {
    std::int32_t devices = kUnreached;
    State from;
    bool by_host = false;
  };

  static std::size_t index(std::int32_t ideal) { return static_cast<std::size_t>(ideal); }
  static WorkTime times(WorkTime time, std::int64_t count) {
    __extension__ using Wide = __int128;
    const Wide product = static_cast<Wide>(time.count()) * count;
    return product > kLongestWork.count() ? kLongestWork
                                          : WorkTime{static_cast<std::int64_t>(product)};
  }
  Reach& reach(State state) {
    return reached_[static_cast<std::size_t>(state.hosts) * done_.size() + index(state.ideal)];
  }

  // True if the same ideal is reached with no more devices and fewer hosts.
  bool is_dominated(State state) {
    for (int hosts = 0; hosts < state.hosts; ++hosts) {
      if (reach({state.ideal, hosts}).devices <= reach(state).devices) return true;
    }
    return false;
  }

  // Returns the state of the full ideal if at most so many devices reach it; else none.
  std::optional<State> find_full(std::int32_t devices) {
    for (int hosts = 0; hosts <= machines_.hosts; ++hosts) {
      if (reach({full_, hosts}).devices <= devices) return State{full_, hosts};
    }
    return std::nullopt;
  }

  void refuse_until(WorkTime load) { next_ = std::min(next_, load); }

  bool can_finish(WorkTime left, int devices, int hosts, WorkTime limit) const {
    return left - relief_.saved(limit, hosts) <= times(limit, devices);
  }

  // True if the devices and hosts left over can do what an ideal leaves.
  bool can_finish(std::int32_t ideal, int devices_used, int hosts_used) {
    const WorkTime left = done_[index(full_)] - done_[index(ideal)];
    const int devices = machines_.devices - devices_used;
    const int hosts = machines_.hosts - hosts_used;
    if (can_finish(left, devices, hosts, limit_)) return true;
    const bool may_be_next =
        next_ > limit_ + WorkTime{1} && (devices > 0 || hosts > 0) &&
        can_finish(left, devices, hosts, std::min(next_ - WorkTime{1}, kLongestWork));
    if (may_be_next) refuse_until(time_to_do(left, relief_, devices, hosts));
    return false;
  }

  // Visits all ideals above the state's whose difference passes `enter`; `arrive` sees each ideal
  // once.
  template <class Enter, class Arrive>
  void grow(State state, Enter enter, Arrive arrive) {
    ++stamp_;
    stage_.start(lattice_, state.ideal);
    stack_.clear();
    stack_.push_back({state.ideal, lattice_.first_step[index(state.ideal)], 0});
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (top.step == lattice_.first_step[index(top.ideal) + 1]) {
        const std::size_t part = top.part;
        stack_.pop_back();
        if (!stack_.empty()) stage_.pop(part);
        continue;
      }
      const IdealLattice::Step step = lattice_.steps[top.step++];
      if (seen_[index(step.ideal)] == stamp_) continue;
      seen_[index(step.ideal)] = stamp_;
      if (--states_ <= 0) return;
      const auto part = static_cast<std::size_t>(step.part);
      stage_.push(part);
      if (!enter()) {
        stage_.pop(part);
        continue;
      }
      arrive(step.ideal);
      stack_.push_back({step.ideal, lattice_.first_step[index(step.ideal)], part});
    }
  }

  void grow_on_device(State state) {
    const std::int32_t devices = reach(state).devices + 1;
    grow(
        state,
        [&] {
          if (!stage_.runs_on_device() || stage_.memory() > machines_.device_memory) return false;
          if (stage_.least() <= limit_) return true;
          refuse_until(stage_.least());
          return false;
        },
        [&](std::int32_t ideal) {
          if (stage_.load() > limit_) return refuse_until(stage_.load());
          const State arrived{ideal, state.hosts};
          if (reach(arrived).devices <= devices) return;
          if (!can_finish(ideal, devices, state.hosts)) return;
          reach(arrived) = {devices, state, false};
          next_level_.push_back(arrived);
        });
  }

  void grow_on_host(State state, std::vector<State>& level) {
    const std::int32_t devices = reach(state).devices;
    grow(
        state,
        [&] {
          if (stage_.host_work() <= limit_) return true;
          refuse_until(stage_.host_work());
          return false;
        },
        [&](std::int32_t ideal) {
          const State arrived{ideal, state.hosts + 1};
          if (reach(arrived).devices <= devices) return;
          if (!can_finish(ideal, devices, arrived.hosts)) return;
          reach(arrived) = {devices, state, true};
          level.push_back(arrived);
        });
  }

  Split trace_back(State state) {
    Split split;
    while (state.ideal != 0) {
      const Reach& last = reach(state);
      SplitStage stage;
      stage.is_host = last.by_host;
      stage_.start(lattice_, last.from.ideal);
      for (std::size_t p = 0; p < graph_.parts.size(); ++p) {
        if (!lattice_.holds(state.ideal, p) || lattice_.holds(last.from.ideal, p)) continue;
        stage.parts.push_back(p);
        stage_.push(p);
      }
      stage.work = stage.is_host ? stage_.host_work() : stage_.work();
      if (!stage.is_host) stage.transfer = stage_.cut();
      stage.memory = stage_.memory();
      split.load = std::max(split.load, stage.load());
      split.stages.push_back(std::move(stage));
      state = last.from;
    }
    std::reverse(split.stages.begin(), split.stages.end());
    return split;
  }

  struct Frame {
    std::int32_t ideal = 0;
    std::size_t step = 0;
    std::size_t part = 0;  // that led here
  };

  const PartGraph& graph_;
  const IdealLattice& lattice_;
  const SplitDevices& machines_;
  std::int64_t& states_;
  HostRelief relief_;
  StageLoad stage_;
  std::int32_t full_;
  std::vector<WorkTime> done_;  // device time of an ideal's parts
  std::vector<std::uint32_t> seen_;
  std::uint32_t stamp_ = 0;
  std::vector<Frame> stack_;
  WorkTime limit_{0};
  WorkTime next_{0};
  std::vector<Reach> reached_;
  std::vector<State> next_level_;
};

}  // namespace

BestSplit find_best_split(const PartGraph& graph, const IdealLattice& lattice,
                          const SplitDevices& machines, WorkTime floor, WorkTime ceiling,
                          std::int64_t& states) {
  SplitSearch search(graph, lattice, machines, states);
  BestSplit best;
  best.lower_bound = floor;
  // The first questions are asked near the floor, where the answer mostly is.
  WorkTime reach = floor / 64 + WorkTime{1};
  while (best.lower_bound < ceiling) {
    const WorkTime room = ceiling - best.lower_bound;
    const WorkTime limit = best.lower_bound + std::min(reach, (room - WorkTime{1}) / 2);
    if (auto split = search.ask(limit)) {
      ceiling = split->load;
      best.split = std::move(split);
      continue;
    }
    if (search.is_out_of_states()) {
      best.is_finished = false;
      return best;
    }
    best.lower_bound = search.next_limit();
    reach = std::min(2 * reach, ceiling);
  }
  best.lower_bound = std::max(best.lower_bound, floor);
  if (best.split) best.lower_bound = best.split->load;
  return best;
}

std::optional<Split> find_split(const PartGraph& graph, const IdealLattice& lattice,
                                const SplitDevices& machines, WorkTime limit,
                                std::int64_t& states) {
  return SplitSearch(graph, lattice, machines, states).ask(limit);
}

}  // namespace frazil
