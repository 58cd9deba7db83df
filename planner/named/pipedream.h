#pragma once
// clang-format off
// PipeDream's optimizer (Narayanan et al., SOSP 2019, section 3.1, in the form of its released
// code, with activation compression 1 and no memory constraint). It works over the states 1..n of
// planner/named/antichain_states.h. Let g be the machines of a stage, B the bandwidth, T and P the
// time and the parameter bytes between two states, A the output bytes of a state, and w the number
// of machines of the level below that one machine of this level has (1 at the lowest level):
//   one stage     (T + 4(g-1)P / (g B w)) / g
//   best(j, m)    one stage on g = m machines, or the minimum over states k before j and over g < m
//                 of the largest of
//                 best(k, m-g),  (T(k,j) + 4(g-1)P(k,j) / (g B)) / g,  2A(k) / (gB),  2A(j) / (gB)
// The last term is left out at the last state. Only a strictly better choice replaces an earlier
// one. With several levels, T of a level is the best time of the level below on all its machines. A
// straight pipeline has g = 1 throughout and uses all machines, so more machines may make it worse.
// The objective is the asynchronous steady state: no bubble, no flush. Chosen here: times are
// integer ns, each quotient rounded down, and k ascends; PipeDream's code goes over k in no order,
// so with ties it may find another number of stages.
// clang-format on

#include <optional>
#include <vector>

#include "planner/named/antichain_states.h"
#include "planner/plan/plan.h"

namespace frazil {

struct PipeDreamLevel {
  int machines = 1;
  BytesPerSecond bandwidth;  // between the machines; 0: communication is free
};

struct PipeDreamStage {
  std::vector<int> operators;  // ascending
  std::vector<int> machines;   // replicas at each level, innermost first
};

struct PipeDreamPartition {
  Duration bottleneck{0};
  Duration single_machine{0};
  std::vector<PipeDreamStage> stages;
};

// Returns the partition with the smallest bottleneck; none for a straight pipeline with more
// machines than states. Throws InfeasibleError where the graph branches too much (kMostStates).
// Requires: one level or two, each with machines >= 1.
std::optional<PipeDreamPartition> partition_for_pipedream(const OperatorGraph& graph,
                                                          const std::vector<PipeDreamLevel>& levels,
                                                          bool straight);

}  // namespace frazil
