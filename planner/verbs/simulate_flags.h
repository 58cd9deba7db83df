#pragma once
// Adds the flags of frazil simulate, says what they ask of the simulation of a step, and refuses
// those that do not belong together. What plan and what-if are is read elsewhere
// (planner/verbs/changed_plan.h, planner/verbs/what_if_flags.h). The functions that read or refuse
// throw InputError.

#include "planner/plan/plan.h"
#include "planner/prediction/contended_step.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Adds all flags of the subcommand, those of a what-if among them.
void describe_simulate(boost::program_options::options_description& flags);

// Refuses what a comparison of schedules does not answer: one schedule's flags and details.
void refuse_with_compare(const Flags& values);
// Refuses shared links, blocking sends and buffers for a what-if: its messages are pure latency,
// which cannot be shared and stops no device.
void refuse_contention_of_what_if(const Flags& values);

// Returns how devices and links are contended for, and the jitter of times.
ContentionOptions read_contention(const Flags& values);
// Returns how a step of the plan clips and reduces its gradients.
StepOptions read_step_options(const Flags& values, const Plan& plan);

}  // namespace frazil
