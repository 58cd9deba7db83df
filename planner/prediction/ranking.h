#pragma once
// Ranks plans by what the simulator predicts for each of them. Plans that do not fit stay in the
// ranking with their reason, and so do the candidates that a search leaves out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/setting.h"
#include "sim/memory.h"

namespace frazil {

// The reason why a candidate cannot run.
struct Infeasible {
  std::string reason;  // one sentence
  DeviceId device;
  Bytes needed;
  Bytes available;
};

// Finds the device that misses most memory; none if everything fits.
std::optional<Infeasible> find_overflow(const std::vector<MemoryPeak>& memory,
                                        const Cluster& cluster);
// Throws InfeasibleError if a device misses memory, with the device, what it needs and has, and
// what it holds at its peak. `file` is the file of the plan; empty if no file gave it.
void refuse_overflow(const std::vector<MemoryPeak>& memory, const Cluster& cluster,
                     const std::string& file = "");

// Returns a lower bound on the time of a step in a window: the compute of the busiest device. The
// bounds on a step by itself (planner/prediction/bounds.h) hold its ramp, which a step in a window
// need not have.
LowerBound bound_window(const PlanSimulation& window);

struct Candidate {
  // The plan; an infeasible candidate of a search has the best cut found without memory limits, if
  // there is one.
  Plan plan;
  Duration makespan{0};  // of a step; of a plan with steps ahead, its share of a window
  std::vector<MemoryPeak> memory;
  PlanBounds bounds;
  bool extrapolated = false;
  std::optional<Infeasible> infeasible;
};

// The reason why a search leaves candidates out.
struct Rejection {
  enum class Why : std::uint8_t {
    kBound,    // they take at least `time`, by the lower bound named `bound`
    kSlower,   // the simulated time is `time`
    kMemory,   // `device`, or else a group's mean device, needs `needed` or more, over `available`
    kRefused,  // an interpreter refuses them with `sentence`
  };
  Why why = Why::kBound;
  std::string_view bound;
  Duration time{0};
  Duration against{0};  // the slowest plan that was kept
  std::optional<DeviceId> device = std::nullopt;
  Bytes needed;
  Bytes available;
  std::string sentence;
};

// Candidates of one shape that are left out for one reason. The devices form `groups` groups of
// `group_devices`, each holding the whole model; the first `longer` groups have one device more. No
// `schedule` means every schedule of the search, or all that share a bound.
struct RejectedShapes {
  int group_devices = 1;
  int groups = 1;
  int longer = 0;
  int micro_batch_size = 1;
  std::optional<NamedSchedule> schedule;
  bool recompute = false;
  bool cached = false;  // the frozen prefix
  std::int64_t candidates = 1;
  Rejection rejection;
};

// The candidates that a search which ended early did not look at.
struct NotLookedAt {
  std::int64_t candidates = 0;
  Duration at_least{0};  // no such candidate takes less
};

// What a search of the cuts by simulated time came to.
struct SearchedCuts {
  int faster = 0;          // plans that got faster cuts
  std::int64_t tried = 0;  // cuts, each timed
  Duration at_least{0};    // no plan of the search takes less, whatever its cuts
};

// What a search for plans with stages on several devices came to.
struct SharedStages {
  int tried = 0;                    // plans, each simulated
  std::optional<Duration> fastest;  // of those that fit
};

// What a search for plans whose devices are steps ahead of each other came to.
struct SearchedWindows {
  int tried = 0;                    // plans, each simulated
  std::optional<Duration> fastest;  // of those that fit
};

// Candidates in order, but for prefer_simplest(). Feasible candidates come first, by makespan,
// devices used, stages, plain plans before plans that recompute or choose a depth, memory on the
// fullest device, summary. Infeasible candidates follow by the bytes missing; those that an
// interpreter refuses come last.
struct Ranking {
  std::vector<Candidate> candidates;
  std::vector<RejectedShapes> rejected;  // by a search that does not simulate everything
  std::optional<NotLookedAt> left;       // if none, the first candidates are proven the best
  std::optional<SearchedCuts> cuts;      // none if the search did not look for cuts
  // None if the search did not look for stages on several devices.
  std::optional<SharedStages> shared = std::nullopt;
  // None if the search did not look for plans with steps ahead.
  std::optional<SearchedWindows> ahead = std::nullopt;
  bool best_alone = false;  // the candidates behind the first are the best of those looked at
  int simulated = 0;        // graphs that the search evaluated; 0 if one per candidate
  int tied = 0;  // candidates in front that are equally fast within a noise, simplest first
  const Candidate* best() const;     // the first; nullptr if nothing is feasible
  const Candidate* fastest() const;  // the first in order of makespan; nullptr as above
};

// Simulates and bounds a plan. The candidate is infeasible if an interpreter refuses the plan or a
// device has too little memory.
Candidate judge_plan(Plan plan, Setting setting, const StepOptions& options);
Candidate judge_plan(Plan plan, Setting setting, bool clip);

Bytes fullest_device(const Candidate& candidate);
// True if two feasible candidates are one plan under the names of two schedules: stages, devices,
// micro-batches, makespan and the memory peak of each device are equal.
bool differ_in_schedule_alone(const Candidate& a, const Candidate& b);

// Counts the devices of all stages; a device counts once for each stage that it has.
int count_devices(const Plan& plan);

// The order of a ranking: infeasible, refused, bytes missing, makespan, devices, stages, not plain,
// memory, summary.
using RankingKey =
    std::tuple<bool, bool, std::int64_t, Duration, int, std::size_t, bool, Bytes, std::string>;
RankingKey ranking_key(const Candidate& candidate);
void rank(std::vector<Candidate>& candidates);

// Explains why nothing in the ranking can run, by the candidate that misses least, what it needs
// and has. `by` names what this candidate misses least of, if another candidate misses less of
// something else.
std::string explain_infeasible(const Ranking& ranking, const std::string& by = "");

}  // namespace frazil
