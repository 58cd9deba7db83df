#pragma once
// Times a walk through the segments of a training part by part: which plan is held in each segment,
// and what is cached meanwhile. All parts are exact and add up to the whole.
// A search of plans takes one ring of all-reduces at a time over a host's InfiniBand adapter. Here
// the stages of a plan's pipelines, each with its ring, share the adapter.

#include <vector>

#include "planner/reproduce/own_plans/own_training.h"
#include "planner/trajectory/walk_times.h"

namespace frazil {

// The time of a training by what it is spent on.
struct TimeParts {
  Duration compute{0};      // forwards and backwards of the device that has most of them
  Duration updates{0};      // of that device
  Duration waits{0};        // of that device: for reductions, messages, other stages
  Duration reading{0};      // the cache, as far as it takes longer than the step beside it
  Duration writing{0};      // into the cache
  Duration transitions{0};  // from plan to plan
  Duration start{0};        // before the first step

  Duration total() const;
  TimeParts& operator+=(const TimeParts& more);
  friend TimeParts operator*(TimeParts parts, Step steps);
  friend bool operator==(const TimeParts&, const TimeParts&) = default;
};

// Splits the time of one step in which layers [0, depth) are cached. Throws InfeasibleError if the
// plan does not fit.
TimeParts time_step(const OwnTraining& training, const Plan& plan, const FreezeMask& mask,
                    int depth);
// Returns the time that one step of the plan spends on reading, or on writing, these features.
Duration time_features(const OwnTraining& training, const Plan& plan, HeldFeatures features);
// Returns the time of a transition; `trained`: the mask until then.
Duration time_transition(const OwnTraining& training, const Plan& from, const Plan& to,
                         const FreezeMask& trained);
// Times the whole walk. Requires: every plan can hold the caches that it has.
TimeParts time_walk(const OwnTraining& training, const std::vector<HeldSegment>& walk);

}  // namespace frazil
