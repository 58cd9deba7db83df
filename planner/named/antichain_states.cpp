#include "planner/named/antichain_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiles/error.h"

namespace frazil {
namespace {

using Antichain = std::vector<int>;  // operators, in the order in which they were added
using OperatorSet = std::vector<bool>;

// Knows which operators read which outputs, directly and through operators between.
class Readers {
 public:
  explicit Readers(const OperatorGraph& graph)
      : readers_(graph.operators.size()), inputs_(graph.operators.size()) {
    for (const auto& [from, to] : graph.edges) {
      readers_.at(at(from)).push_back(to);
      inputs_.at(at(to)).push_back(from);
    }
    before_.assign(readers_.size(), OperatorSet(readers_.size()));
    for (const int op : sort()) {
      OperatorSet& before = before_[at(op)];
      for (const int input : inputs_[at(op)]) {
        before[at(input)] = true;
        for (std::size_t i = 0; i < before.size(); ++i) {
          if (before_[at(input)][i]) before[i] = true;
        }
      }
    }
  }

  const std::vector<int>& readers(int op) const { return readers_[at(op)]; }
  const OperatorSet& before(int op) const { return before_[at(op)]; }
  bool is_before(int first, int second) const { return before_[at(second)][at(first)]; }
  int first_source() const {
    const auto source = std::find_if(inputs_.begin(), inputs_.end(),
                                     [](const std::vector<int>& inputs) { return inputs.empty(); });
    ENSURE(source != inputs_.end(), "an operator without inputs");
    return static_cast<int>(source - inputs_.begin());
  }

 private:
  static std::size_t at(int op) { return static_cast<std::size_t>(op); }

  std::vector<int> sort() const {
    std::vector<std::size_t> missing;
    for (const auto& inputs : inputs_) missing.push_back(inputs.size());
    std::vector<int> sorted;
    for (std::size_t op = 0; op < inputs_.size(); ++op) {
      if (missing[op] == 0) sorted.push_back(static_cast<int>(op));
    }
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      for (const int reader : readers_[at(sorted[i])]) {
        if (--missing[at(reader)] == 0) sorted.push_back(reader);
      }
    }
    ENSURE(sorted.size() == inputs_.size(), "a graph of operators without a cycle");
    return sorted;
  }

  std::vector<std::vector<int>> readers_;
  std::vector<std::vector<int>> inputs_;
  std::vector<OperatorSet> before_;
};

// Returns the operators before the antichain whose output is read beyond it, then the antichain.
Antichain augment(const Antichain& antichain, const Readers& readers) {
  Antichain augmented;
  const auto operators = static_cast<int>(readers.before(0).size());
  for (int op = 0; op < operators; ++op) {
    const bool read_beyond = std::any_of(antichain.begin(), antichain.end(), [&](int member) {
      if (!readers.is_before(op, member)) return false;
      const std::vector<int>& of = readers.readers(op);
      return std::any_of(of.begin(), of.end(), [&](int reader) {
        return reader != member && !readers.is_before(reader, member);
      });
    });
    if (read_beyond) augmented.push_back(op);
  }
  augmented.insert(augmented.end(), antichain.begin(), antichain.end());
  return augmented;
}

// Returns the members that come before no other member, each once.
Antichain drop_earlier(const Antichain& augmented, const Readers& readers) {
  Antichain antichain;
  for (const int member : augmented) {
    const bool is_earlier = std::any_of(augmented.begin(), augmented.end(), [&](int other) {
      return readers.is_before(member, other);
    });
    const bool is_known = std::find(antichain.begin(), antichain.end(), member) != antichain.end();
    if (!is_earlier && !is_known) antichain.push_back(member);
  }
  return antichain;
}

std::vector<Antichain> find_next(const Antichain& antichain, const Readers& readers) {
  std::vector<Antichain> next;
  const Antichain augmented = augment(antichain, readers);
  for (std::size_t place = 0; place < augmented.size(); ++place) {
    for (const int reader : readers.readers(augmented[place])) {
      const bool is_member =
          std::find(antichain.begin(), antichain.end(), reader) != antichain.end();
      const bool is_passed = std::any_of(augmented.begin(), augmented.end(), [&](int member) {
        return readers.is_before(reader, member);
      });
      if (is_member || is_passed) continue;
      Antichain replaced = augmented;
      replaced[place] = reader;
      next.push_back(drop_earlier(replaced, readers));
    }
  }
  return next;
}

// The graph of antichains, in the order in which a breadth-first search finds them.
struct AntichainGraph {
  std::vector<Antichain> antichains;
  std::vector<std::vector<int>> next;
};

AntichainGraph find_antichains(const Readers& readers) {
  AntichainGraph graph;
  std::map<Antichain, int> known;  // by sorted members
  const auto add = [&](const Antichain& antichain) {
    Antichain key = antichain;
    std::sort(key.begin(), key.end());
    const auto [entry, is_new] = known.try_emplace(key, static_cast<int>(known.size()));
    if (is_new) graph.antichains.push_back(antichain);
    return entry->second;
  };
  add({readers.first_source()});
  for (std::size_t i = 0; i < graph.antichains.size(); ++i) {
    if (graph.antichains.size() > static_cast<std::size_t>(kMostStates)) {
      throw InfeasibleError(fmt::format(
          "pipedream cuts at antichains, and this model has more than {} of them", kMostStates));
    }
    graph.next.emplace_back();
    const Antichain antichain = graph.antichains[i];
    for (const Antichain& next : find_next(antichain, readers)) {
      graph.next[i].push_back(add(next));
    }
  }
  return graph;
}

// Sorts the antichains topologically: the reverse post-order of a depth-first walk.
std::vector<int> sort_states(const AntichainGraph& graph) {
  std::vector<int> order;
  std::vector<bool> seen(graph.antichains.size());
  std::vector<std::pair<int, std::size_t>> path{{0, 0}};
  seen[0] = true;
  while (!path.empty()) {
    auto& [state, next] = path.back();
    const std::vector<int>& readers = graph.next[static_cast<std::size_t>(state)];
    if (next == readers.size()) {
      order.push_back(state);
      path.pop_back();
      continue;
    }
    const int reader = readers[next++];
    if (seen[static_cast<std::size_t>(reader)]) continue;
    seen[static_cast<std::size_t>(reader)] = true;
    path.emplace_back(reader, 0);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

AntichainState make_state(const Antichain& antichain, const OperatorGraph& graph,
                          const Readers& readers) {
  AntichainState state;
  state.done.assign(graph.operators.size(), false);
  for (const int member : augment(antichain, readers)) {
    const auto m = static_cast<std::size_t>(member);
    state.output += graph.operators[m].activation;
    state.done[m] = true;
    for (std::size_t op = 0; op < state.done.size(); ++op) {
      if (readers.before(member)[op]) state.done[op] = true;
    }
  }
  for (std::size_t op = 0; op < state.done.size(); ++op) {
    if (!state.done[op]) continue;
    state.compute += graph.operators[op].compute;
    state.parameters += graph.operators[op].parameters;
  }
  return state;
}

}  // namespace

std::vector<AntichainState> find_antichain_states(const OperatorGraph& graph) {
  ENSURE(!graph.operators.empty(), "an operator");
  const Readers readers(graph);
  const AntichainGraph antichains = find_antichains(readers);
  const std::vector<int> order = sort_states(antichains);
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = i;
  std::vector<AntichainState> states;
  std::vector<std::vector<bool>> before(order.size(), std::vector<bool>(order.size()));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto antichain = static_cast<std::size_t>(order[i]);
    states.push_back(make_state(antichains.antichains[antichain], graph, readers));
    for (std::size_t b = 0; b < i; ++b) {
      if (before[i][b]) states.back().before.push_back(static_cast<int>(b));
    }
    for (const int next : antichains.next[antichain]) {
      std::vector<bool>& of_next = before[place[static_cast<std::size_t>(next)]];
      of_next[i] = true;
      for (std::size_t b = 0; b < i; ++b) {
        if (before[i][b]) of_next[b] = true;
      }
    }
  }
  return states;
}

}  // namespace frazil
