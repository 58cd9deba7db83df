#pragma once
// Changes the schedule or the micro-batches of a plan, for what-ifs. The stage boundaries, the
// devices and the global batch stay.

#include "planner/interop/pytorch_csv.h"
#include "planner/plan/plan.h"
#include "planner/prediction/ranking.h"
#include "profiles/setting.h"

namespace frazil {

// Returns the plan with that schedule, with the weight versions that go with it, and with the
// stages that recompute (activation checkpointing) if the schedule says which. make_schedule()
// checks whether the placement of the plan fits.
Plan with_schedule(Plan plan, NamedSchedule schedule);
Plan with_schedule(Plan plan, DispatchPolicy policy);

// Returns the plan with its lists given outright if its schedule decides by times, for readers that
// do not know the times; returns any other plan as it is. Throws what make_schedule() throws.
Plan with_lists(Plan plan, Setting setting);

// Cuts the same batch into `micro_batches` micro-batches, equal but for a short last one; pipelines
// keep their shares, rounded to whole micro-batches. Throws InfeasibleError if the batch cannot be
// cut so, or if a pipeline would be left without any.
Plan with_micro_batches(Plan plan, int micro_batches);

// Returns the plan with the order and the places of a schedule of PyTorch. A rank lies on the
// device on which the plan has its stages; where the schedule puts other stages together than the
// plan does, ranks take the plan's devices in the order of its stages. Stage boundaries and batch
// stay those of the plan. An I of the first stage stays as a wait (planner/plan/gradient_waits.h);
// other backwards that the mask leaves needless are dropped when the lists are completed. Throws
// InputError{file} if the plan has several pipelines, or if stages, micro-batches or ranks do not
// agree.
Plan with_pytorch_schedule(Plan plan, const PytorchSchedule& imported, int devices,
                           const std::string& file);

// Ranks the plan under every schedule of the menu. PipeDream's schedules are left out: without a
// flush their step is not the step of the others. If the placement of the plan has one chunk per
// device, schedules of any number of chunks are left out too: they would be linear schedules under
// another name.
Ranking compare_schedules(const Plan& plan, Setting setting, bool clip);

}  // namespace frazil
