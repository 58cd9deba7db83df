#pragma once
// A window is what a plan with steps_ahead > 0 hands out at once: steps_ahead + 1 steps. Within a
// window each device begins its next step as soon as it has done its own part of the step before;
// all devices wait for each other at the window's end. Every update of a layer still precedes the
// layer's next forward on its device, so weights are the same bits as with steps one by one.

#include <optional>
#include <string>

#include "planner/plan/plan.h"

namespace frazil {

// How many steps planners let devices be ahead where a model has several losses. Pipe-BD's code has
// no limit within an epoch.
inline constexpr int kDecoupledSteps = 31;

// StepMeetings say what a run does in its steps, besides the plan's work, that several devices come
// to together.
struct StepMeetings {
  bool clips = false;    // gradients, by their norm over all devices
  bool commits = false;  // each step, over processes (planner/plan/commit_round.h)
  bool caches = false;   // the outputs of the frozen prefix
};

// Returns how many steps are handed out at once: a window, or 1 where a meeting keeps devices in
// step.
int steps_of_window(const Plan& plan, const StepMeetings& meetings);

// Returns a sentence on why no device goes ahead although the plan would let it; none where devices
// do, and for a plan with steps_ahead = 0.
std::optional<std::string> explain_in_step(const Plan& plan, const StepMeetings& meetings);

// Returns the plan whose devices wait for each other after each step.
Plan in_step(Plan plan);

}  // namespace frazil
