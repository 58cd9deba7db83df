#pragma once
// Why the best plan of a search is the best: it and the runner-up, where the time of both goes,
// what became of every other candidate, and why devices stay idle. Where nothing fits: what came
// nearest, and what became of all the others.

#include <optional>
#include <string>
#include <vector>

#include "planner/prediction/idle_time.h"
#include "planner/search/search.h"

namespace frazil {

// Where a step's time goes: the mean over the devices a plan uses of
// planner/prediction/idle_time.h, which adds up to the makespan within a ns for each part.
struct StepShares {
  Duration compute{0};                // updates, too
  Duration bubble{0};                 // fill, drain, and waits for other stages
  Duration exposed_communication{0};  // messages that nothing hides
  Duration reduction{0};              // waits of updates for reductions, or for the barrier
};

struct ExplainedCandidate {
  std::string summary;
  Duration makespan{0};
  LowerBound bound;
  StepShares shares;
  int devices = 0;
};

struct Refusals {
  std::string sentence;
  std::int64_t candidates = 0;
};

// Of one schedule, or of those whose schedules were never told apart ("any schedule").
struct FamilyCount {
  std::string schedule;
  std::int64_t bounded = 0;
  std::int64_t slower = 0;
  std::int64_t too_large = 0;
  std::int64_t refused = 0;
  Duration nearest_bound{0};  // the lowest bound among those it rejected, with its name
  std::string nearest_bound_name;
  std::vector<Refusals> refusals;  // sentences that differ, in the order in which they came
  // Of those that are too large the one that misses least: with so much more on its device it may
  // fit, with less it does not.
  std::optional<RejectedShapes> nearest_fit;
};

// "4 x 2" as in tables (planner/prediction/plan_notation.h), "5 x 3 (2 of 4)" where two of three
// pipelines have a stage less for a device less. Without a schedule as if each device had one
// stage.
std::string shape_notation(const RejectedShapes& shapes);
// "4 x 2, micro-batch 8, 1f1b K3 R"
std::string describe_shapes(const RejectedShapes& shapes);

struct IdleDevices {
  std::vector<DeviceId> devices;
  std::string reason;  // one sentence
};

struct PlanExplanation {
  // One or two, of which the second is not the first by another name; none where nothing fits.
  std::vector<ExplainedCandidate> best;
  // Where nothing fits: of those too large, for each shape and schedule the one that misses least,
  // with the candidates of all its sizes and depths; as many as a search keeps, nearest first.
  std::vector<RejectedShapes> nearest;
  std::vector<FamilyCount> families;  // any schedule first, then in menu order
  IdleDevices idle;
  std::int64_t candidates = 0;
  int simulated = 0;
};

PlanExplanation explain_plan(const Ranking& ranking, const ModelProfile& profile,
                             const Cluster& cluster, const SearchOptions& options);

std::string print_plan_explanation(const PlanExplanation& explanation, const Cluster& cluster);
// {"explanation": {"best": [..], "rejected": [..], ..}}
std::string plan_explanation_json(const PlanExplanation& explanation, const Cluster& cluster);

}  // namespace frazil
