#include "planner/plan/step_window.h"

namespace frazil {

std::optional<std::string> explain_in_step(const Plan& plan, const StepMeetings& meetings) {
  if (plan.steps_ahead == 0) return std::nullopt;
  if (meetings.commits) return "over processes every step is committed, so no device goes ahead";
  if (meetings.clips) {
    return "gradients are clipped by their norm over all devices, so no device goes ahead";
  }
  if (meetings.caches) return "the cache is read step by step, so no device goes ahead";
  return std::nullopt;
}

int steps_of_window(const Plan& plan, const StepMeetings& meetings) {
  return explain_in_step(plan, meetings) ? 1 : plan.steps_ahead + 1;
}

Plan in_step(Plan plan) {
  plan.steps_ahead = 0;
  return plan;
}

}  // namespace frazil
