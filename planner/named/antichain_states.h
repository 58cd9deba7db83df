#pragma once
// The states of PipeDream's partition (Narayanan et al., SOSP 2019; its optimizer): the places
// where a graph of operators can be cut. A state is an antichain of operators, augmented by the
// operators before the antichain whose output some operator beyond it still reads. The operators
// before or in the augmented antichain are done. A next state replaces one operator of the
// augmented antichain by an operator that reads its output. A chain of n operators has n states,
// and a branchy graph exponentially many.

#include <utility>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct Operator {
  Duration compute{0};  // forward and backward of a mini-batch
  Bytes activation;     // output for a mini-batch
  Bytes parameters;
};

struct OperatorGraph {
  std::vector<Operator> operators;
  std::vector<std::pair<int, int>> edges;  // (from, to), each once
};

struct AntichainState {
  std::vector<bool> done;   // by operator
  std::vector<int> before;  // indices of all states that come before this one, ascending
  Duration compute{0};      // sum over the operators that are done
  Bytes parameters;         // sum over the operators that are done
  Bytes output;             // sum over the augmented antichain
};

inline constexpr int kMostStates = 20'000;

// Finds the states that can be reached from the first operator without an incoming edge, sorted
// topologically; that operator is the antichain of the first state. Throws InfeasibleError where
// there are more than kMostStates. Requires: an operator, no cycle.
std::vector<AntichainState> find_antichain_states(const OperatorGraph& graph);

}  // namespace frazil
