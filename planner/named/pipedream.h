#pragma once
// PipeDream's optimizer (Narayanan et al., SOSP 2019, section 3.1, in the form of its released
// code, with activation compression 1 and no memory constraint). Over the states 1..n of
// planner/named/antichain_states.h, with g machines, bandwidth B, T and P the time and the
// parameter bytes between two states, A the output of a state, w machines in one of this level:
//   one stage     (T + 4(g-1)P / (g B w)) / g
//   best(j, m)    that, or over states k before j and g < m the least of the largest of
//                 best(k, m-g),  (T(k,j) + 4(g-1)P(k,j) / (g B)) / g,  2A(k) / (gB),  2A(j) / (gB)
// without the last term at the last state; strictly better wins. Over several levels T of a level
// is the best of the one below on all its machines. A straight pipeline has g = 1 throughout and
// uses all machines, so that more of them may make it worse. The objective is the asynchronous
// steady state: no bubble, no flush. Chosen: integer ns, each quotient rounded down, and k
// ascending; the code goes over k in no order, so with ties its number of stages may be another.

#include <optional>
#include <vector>

#include "planner/named/antichain_states.h"
#include "planner/plan/plan.h"

namespace frazil {

struct PipeDreamLevel {
  int machines = 1;
  BytesPerSecond bandwidth;  // between them
};

struct PipeDreamStage {
  std::vector<int> operators;  // ascending
  std::vector<int> machines;   // replicas by level, innermost first
};

struct PipeDreamPartition {
  Duration bottleneck{0};
  Duration single_machine{0};
  std::vector<PipeDreamStage> stages;
};

// None for a straight pipeline with more machines than states. Requires: one level or two, each
// with machines >= 1.
std::optional<PipeDreamPartition> partition_for_pipedream(const OperatorGraph& graph,
                                                          const std::vector<PipeDreamLevel>& levels,
                                                          bool straight);

}  // namespace frazil
