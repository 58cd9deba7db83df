#pragma once
// clang-format off
// Times a walk through the segments of a training: which plan is held in each segment, and what is
// cached of the frozen prefix meanwhile. Steps, transitions and caches cost what
// plan_trajectory.h says of them, so that the walk of a planned trajectory takes its total to the
// nanosecond; but a walk may be any, such as that of a planner that follows a rule of its own. A
// walk's time has three parts, which add up to it:
//   steps         every step as if its cache were full
//   filling       what steps that fill a cache take more than reading it would
//   transitions   moving state from plan to plan, and the overhead
// Every step is one over a whole batch, as in a planned trajectory: if an epoch ends with a short
// step, that step is charged in full.
// clang-format on

#include <vector>

#include "planner/trajectory/cached_walk.h"
#include "planner/trajectory/plan_trajectory.h"
#include "profiles/setting.h"

namespace frazil {

// What of a walk is held in one segment.
struct HeldSegment {
  Plan plan;  // with all blocks active and nothing cached, as candidates of a trajectory are
  ForecastSegment segment;
  HeldCache cache = {};  // as the segment begins
  friend bool operator==(const HeldSegment&, const HeldSegment&) = default;
};

struct RunParts {
  Duration steps{0};
  Duration filling{0};
  Duration transitions{0};

  Duration total() const { return steps + filling + transitions; }
  RunParts& operator+=(const RunParts& more);
  friend bool operator==(const RunParts&, const RunParts&) = default;
};

struct WalkTimes {
  RunParts parts;
  // By segment, the time of a step that reads the segment's cache.
  std::vector<Duration> step_times;
  // Sum over segments of their time x the devices that their plan uses; a transition counts as its
  // new plan's.
  Duration held_device_time{0};
  int transitions = 0;        // changes of plan
  int plans = 0;              // different plans held
  bool extrapolated = false;  // some step's costs are not within the measured micro-batch sizes
};

// What a walk is timed with; its members are those of TrajectoryOptions.
struct WalkRules {
  SearchOptions search;  // clip and overlap are read
  TransitionOverhead overhead = {};
  std::optional<FeatureStore> store = std::nullopt;
};

// Times a walk. Throws InfeasibleError, which names the mask, if a plan does not fit under the mask
// of a segment, or if all of it takes longer than can be added up. Requires: some segment; a store
// with room for what is cached; every plan can hold the caches that it has, and
// their sources, each of which an earlier segment caches.
WalkTimes time_walk(Setting setting, const WalkRules& rules, const std::vector<HeldSegment>& walk);

// Returns the walk of a planned trajectory.
std::vector<HeldSegment> list_held_segments(const PlannedTrajectory& planned);

}  // namespace frazil
