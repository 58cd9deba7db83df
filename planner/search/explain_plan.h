#pragma once
// Explains a search: its best plan and the runner-up, where the time of both goes, what became of
// every other candidate, and why devices stay idle. If nothing fits: which candidates came nearest,
// and what became of all others.

#include <optional>
#include <string>
#include <vector>

#include "planner/prediction/idle_time.h"
#include "planner/search/search.h"
#include "profiles/setting.h"

namespace frazil {

// The parts of a step's time: means over the devices that a plan uses, and over the steps of a
// window, of the parts in
// planner/prediction/idle_time.h. They add up to the makespan within one ns for each part.
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

// What became of the candidates of one schedule, or of those whose schedules were never told apart
// ("any schedule").
struct FamilyCount {
  std::string schedule;
  std::int64_t bounded = 0;
  std::int64_t slower = 0;
  std::int64_t too_large = 0;
  std::int64_t refused = 0;
  Duration nearest_bound{0};  // the lowest bound that rejected one, with its name
  std::string nearest_bound_name;
  std::vector<Refusals> refusals;  // sentences that differ, in the order in which they came
  // The candidates that are too large and miss least: with so much more memory on their device they
  // may fit, with less they do not.
  std::optional<RejectedShapes> nearest_fit;
};

// Returns "4 x 2" as in tables (planner/prediction/plan_notation.h), or "5 x 3 (2 of 4)" where two
// of three pipelines have one stage less for one device less. A shape without a schedule is written
// as if each device had one stage.
std::string shape_notation(const RejectedShapes& shapes);
// Returns "4 x 2, micro-batch 8, 1f1b K3 R".
std::string describe_shapes(const RejectedShapes& shapes);

struct IdleDevices {
  std::vector<DeviceId> devices;
  std::string reason;  // one sentence
};

struct PlanExplanation {
  // One or two candidates, of which the second does not differ from the first in its schedule
  // alone; none if nothing fits.
  std::vector<ExplainedCandidate> best;
  // If nothing fits: for each shape and schedule that is too large the candidate that misses least,
  // with the count of all sizes and depths; as many as a search keeps, nearest first.
  std::vector<RejectedShapes> nearest;
  bool names_nearest = false;         // the first of them is the plan that the answer names
  std::vector<FamilyCount> families;  // any schedule first, then in menu order
  IdleDevices idle;
  std::int64_t candidates = 0;
  int simulated = 0;
};

// Explains a ranking. `named` is the plan that the answer names as the nearest, if nothing fits: it
// stands for its shape and schedule and comes first of `nearest`. It is the only one of them that
// was simulated, so it needs what its row says, and the others that or more. A plan that an
// interpreter refuses is not listed.
PlanExplanation explain_plan(const Ranking& ranking, Setting setting, const SearchOptions& options,
                             const Candidate* named = nullptr);

}  // namespace frazil
