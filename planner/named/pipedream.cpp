#include "planner/named/pipedream.h"

#include <algorithm>
#include <cstdint>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kNone = -1;

// Returns factor x size / (bandwidth x divisor) in ns, rounded down; 0 where bandwidth is 0.
std::int64_t transfer_time(int factor, Bytes size, BytesPerSecond bandwidth, int divisor) {
  if (bandwidth.count == 0) return 0;
  __extension__ using Wide = __int128;
  const Wide scaled = Wide{size.count} * factor * 1'000'000'000;
  return static_cast<std::int64_t>(scaled / (Wide{bandwidth.count} * divisor));
}

// Times between states. Row i starts at state i, without what is done in state i - 1; column j ends
// with state j. kNone where j comes before i.
class StateTimes {
 public:
  explicit StateTimes(const std::vector<AntichainState>& states)
      : states_(states.size()), times_(states.size() * states.size(), kNone) {
    for (std::size_t i = 0; i < states_; ++i) {
      for (std::size_t j = i; j < states_; ++j) {
        at(i, j) = (states[j].compute - (i > 0 ? states[i - 1].compute : Duration{0})).count();
      }
    }
  }

  std::int64_t& at(std::size_t i, std::size_t j) { return times_[i * states_ + j]; }
  std::int64_t at(std::size_t i, std::size_t j) const { return times_[i * states_ + j]; }

 private:
  std::size_t states_;
  std::vector<std::int64_t> times_;
};

// The best way to run states i..j on m machines: its time, its last stage, and where that begins.
struct Cell {
  std::int64_t time = kNone;
  int split = -1;    // last state before the last stage; -1: a single stage
  int machines = 0;  // in the last stage
};

class LevelTable {
 public:
  // `within` is the number of machines of the level below in one machine of this level; the first
  // `rows` states are solved for as starts.
  LevelTable(const std::vector<AntichainState>& states, const StateTimes& times,
             const PipeDreamLevel& level, int within, bool straight, std::size_t rows)
      : states_(states),
        times_(times),
        level_(level),
        straight_(straight),
        cells_(rows * states.size() * static_cast<std::size_t>(level.machines)) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = i; j < states.size(); ++j) start_with_one_stage(i, j, within);
      for (std::size_t j = i + 1; j < states.size(); ++j) split(i, j);
    }
  }

  const Cell& cell(std::size_t i, std::size_t j, int machines) const {
    return cells_[index(i, j, machines)];
  }

 private:
  std::size_t index(std::size_t i, std::size_t j, int machines) const {
    return (i * states_.size() + j) * static_cast<std::size_t>(level_.machines) +
           static_cast<std::size_t>(machines) - 1;
  }
  Bytes parameters(std::size_t i, std::size_t j) const {
    return states_[j].parameters - (i > 0 ? states_[i - 1].parameters : Bytes{});
  }
  int most_replicas() const { return straight_ ? 1 : level_.machines; }

  void start_with_one_stage(std::size_t i, std::size_t j, int within) {
    const std::int64_t time = times_.at(i, j);
    if (time == kNone) return;
    for (int g = 1; g <= most_replicas(); ++g) {
      const std::int64_t reduce =
          transfer_time(4 * (g - 1), parameters(i, j), level_.bandwidth, g * within);
      cells_[index(i, j, g)] = {(time + reduce) / g, -1, g};
    }
  }

  // Returns the longest of the time of a last stage k+1..j on g machines, of the transfer into the
  // stage and of the transfer out of it.
  std::int64_t last_stage_time(std::size_t k, std::size_t j, std::int64_t time, int g) const {
    const std::int64_t reduce =
        transfer_time(4 * (g - 1), parameters(k + 1, j), level_.bandwidth, g);
    std::int64_t longest = (time + reduce) / g;
    longest = std::max(longest, transfer_time(2, states_[k].output, level_.bandwidth, g));
    if (j + 1 < states_.size()) {
      longest = std::max(longest, transfer_time(2, states_[j].output, level_.bandwidth, g));
    }
    return longest;
  }

  // Tells whether a state is done before row i begins.
  bool is_passed(std::size_t i, int state) const {
    if (i == 0) return false;
    const std::vector<int>& passed = states_[i - 1].before;
    return static_cast<std::size_t>(state) < i ||
           std::binary_search(passed.begin(), passed.end(), state);
  }

  void split(std::size_t i, std::size_t j) {
    for (const int k : states_[j].before) {
      if (is_passed(i, k)) continue;
      const std::int64_t time = times_.at(static_cast<std::size_t>(k) + 1, j);
      if (time == kNone) continue;
      for (int g = 1; g <= std::min(most_replicas(), level_.machines - 1); ++g) {
        split_behind(i, k, j, last_stage_time(static_cast<std::size_t>(k), j, time, g), g);
      }
    }
  }

  // Tries a split behind state k with a last stage on g machines that takes `last` ns.
  void split_behind(std::size_t i, int k, std::size_t j, std::int64_t last, int g) {
    for (int machines = g + 1; machines <= level_.machines; ++machines) {
      const std::int64_t before = cells_[index(i, static_cast<std::size_t>(k), machines - g)].time;
      if (before == kNone) continue;
      Cell& best = cells_[index(i, j, machines)];
      const std::int64_t pipeline = std::max(before, last);
      if (best.time == kNone || pipeline < best.time) best = {pipeline, k, g};
    }
  }

  const std::vector<AntichainState>& states_;
  const StateTimes& times_;
  PipeDreamLevel level_;
  bool straight_;
  std::vector<Cell> cells_;
};

struct StateStage {
  std::size_t first = 0;
  std::size_t last = 0;
  std::vector<int> machines;  // by level, innermost first
};

// Returns the stages of states first..last on `machines` machines of a level, in order.
std::vector<StateStage> read_stages(const LevelTable& table, std::size_t first, std::size_t last,
                                    int machines) {
  std::vector<StateStage> stages;
  const Cell* cell = &table.cell(first, last, machines);
  for (; cell->split >= 0; cell = &table.cell(first, last, machines)) {
    const auto split = static_cast<std::size_t>(cell->split);
    stages.push_back({split + 1, last, {cell->machines}});
    last = split;
    machines -= cell->machines;
  }
  stages.push_back({first, last, {cell->machines}});
  std::reverse(stages.begin(), stages.end());
  return stages;
}

// Lists the operators of each stage: those done in its last state and in no stage before.
std::vector<PipeDreamStage> list_operators(const std::vector<StateStage>& stages,
                                           const std::vector<AntichainState>& states) {
  std::vector<PipeDreamStage> listed;
  std::vector<bool> done(states.front().done.size());
  for (const StateStage& stage : stages) {
    PipeDreamStage& of = listed.emplace_back();
    of.machines = stage.machines;
    for (std::size_t op = 0; op < done.size(); ++op) {
      // Operators that no state holds go to the last stage.
      const bool holds = &stage == &stages.back() || states[stage.last].done[op];
      if (!holds || done[op]) continue;
      done[op] = true;
      of.operators.push_back(static_cast<int>(op));
    }
  }
  return listed;
}

}  // namespace

std::optional<PipeDreamPartition> partition_for_pipedream(const OperatorGraph& graph,
                                                          const std::vector<PipeDreamLevel>& levels,
                                                          bool straight) {
  ENSURE(levels.size() == 1 || levels.size() == 2, "one level of machines or two");
  const std::vector<AntichainState> states = find_antichain_states(graph);
  const std::size_t last = states.size() - 1;
  StateTimes times(states);
  std::vector<LevelTable> tables;
  int within = 1;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const bool is_last = l + 1 == levels.size();
    tables.emplace_back(states, times, levels[l], within, straight, is_last ? 1 : states.size());
    within = levels[l].machines;
    if (is_last) break;
    for (std::size_t i = 0; i <= last; ++i) {
      for (std::size_t j = i; j <= last; ++j) {
        times.at(i, j) = tables[l].cell(i, j, within).time;
      }
    }
  }
  PipeDreamPartition partition;
  partition.single_machine = states.back().compute;
  const std::int64_t bottleneck = tables.back().cell(0, last, within).time;
  if (bottleneck == kNone) return std::nullopt;
  partition.bottleneck = Duration{bottleneck};
  std::vector<StateStage> stages = read_stages(tables.back(), 0, last, within);
  if (levels.size() == 2) {
    std::vector<StateStage> inner;
    for (const StateStage& outer : stages) {
      for (StateStage& stage :
           read_stages(tables.front(), outer.first, outer.last, levels.front().machines)) {
        stage.machines.push_back(outer.machines.front());
        inner.push_back(std::move(stage));
      }
    }
    stages = std::move(inner);
  }
  partition.stages = list_operators(stages, states);
  return partition;
}

}  // namespace frazil
