#pragma once
// Plans beside each other: what the simulator says of each, in order. What does not fit keeps its
// reason, and so does what a search leaves out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/bounds.h"
#include "planner/prediction/simulate_plan.h"
#include "sim/memory.h"

namespace frazil {

// Why a candidate cannot run.
struct Infeasible {
  std::string reason;  // one sentence
  DeviceId device;
  Bytes needed;
  Bytes available;
};

// The device that misses most memory; none when everything fits.
std::optional<Infeasible> find_overflow(const std::vector<MemoryPeak>& memory,
                                        const Cluster& cluster);
// Throws InfeasibleError where there is one: the device, what it needs and has, and what it holds
// at its peak. `file`: of a plan that was given.
void refuse_overflow(const std::vector<MemoryPeak>& memory, const Cluster& cluster,
                     const std::string& file = "");

struct Candidate {
  Plan plan;  // of an infeasible candidate: the best cut found without memory limits, if any
  Duration makespan{0};
  std::vector<MemoryPeak> memory;
  PlanBounds bounds;
  bool extrapolated = false;
  std::optional<Infeasible> infeasible;
};

// Why a search leaves candidates out.
struct Rejection {
  enum class Why : std::uint8_t {
    kBound,    // they take at least `time`, by the bound of that name
    kSlower,   // simulated: `time`
    kMemory,   // `device`, or the mean one of a group, needs so much at least, and has less
    kRefused,  // an interpreter refuses them, in this sentence
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

// Candidates with one reason: groups of devices, each with the model, of which the first `longer`
// have a device more. Without a schedule: with every one of the search, or all that share a bound.
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

// What a search that ended early knows of the rest: nothing of it takes less than this.
struct NotLookedAt {
  std::int64_t candidates = 0;
  Duration at_least{0};
};

// Feasible ones first by (makespan, devices used, stages, plain ones before those that recompute or
// have a depth of their own, memory on the fullest device, summary); then the infeasible ones.
struct Ranking {
  std::vector<Candidate> candidates;
  std::vector<RejectedShapes> rejected;  // by a search that does not simulate everything
  std::optional<NotLookedAt> left;       // none: the first are proven to be the best
  int simulated = 0;                     // graphs that the search evaluated; 0: one per candidate
  const Candidate* best() const;         // none when nothing is feasible
};

// Simulated and bounded; infeasible where an interpreter refuses it or a device has too little
// memory.
Candidate judge_plan(Plan plan, const ModelProfile& profile, const Cluster& cluster,
                     const StepOptions& options);
Candidate judge_plan(Plan plan, const ModelProfile& profile, const Cluster& cluster, bool clip);

Bytes fullest_device(const Candidate& candidate);
// Whether two candidates that fit are one plan under two schedules' names: equal stages, devices
// and micro-batches, as long, and as much memory on each device.
bool differ_in_schedule_alone(const Candidate& a, const Candidate& b);

// Device places of its stages: a device counts once for each stage it has.
int count_devices(const Plan& plan);

// Infeasible, refused, bytes missing, makespan, devices, stages, not plain, memory, summary.
using RankingKey =
    std::tuple<bool, bool, std::int64_t, Duration, int, std::size_t, bool, Bytes, std::string>;
RankingKey ranking_key(const Candidate& candidate);
void rank(std::vector<Candidate>& candidates);

// Why nothing in the ranking can run: the candidate that misses least, what it needs and has. `by`:
// of what, where others miss less of something else.
std::string explain_infeasible(const Ranking& ranking, const std::string& by = "");

}  // namespace frazil
