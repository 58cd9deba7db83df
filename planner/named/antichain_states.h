#pragma once
// The states of PipeDream's partition (Narayanan et al., SOSP 2019; its optimizer): places where a
// graph of operators can be cut. A state is an antichain of operators, augmented by those before it
// that some operator beyond it still reads; what lies before or in it is done. The next states
// replace one of these by an operator that reads it. A chain of n operators has n states, and a
// branchy graph exponentially many.

#include <utility>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct Operator {
  Duration compute{0};  // forward and backward of a mini-batch
  Bytes activation;     // its output for a mini-batch
  Bytes parameters;
};

struct OperatorGraph {
  std::vector<Operator> operators;
  std::vector<std::pair<int, int>> edges;  // (from, to), each once
};

struct AntichainState {
  std::vector<bool> done;   // by operator
  std::vector<int> before;  // all states it comes after, ascending
  Duration compute{0};      // sums over what is done
  Bytes parameters;
  Bytes output;  // of the augmented antichain
};

inline constexpr int kMostStates = 20'000;

// Topologically sorted; the first holds the first operator without an incoming edge. Throws
// InfeasibleError where there are more than kMostStates. Requires: an operator, no cycle.
std::vector<AntichainState> find_antichain_states(const OperatorGraph& graph);

}  // namespace frazil
