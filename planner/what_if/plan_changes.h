#pragma once
// What if a plan had another schedule, or other micro-batches? The cut, the devices and the global
// batch stay.

#include "planner/interop/pytorch_csv.h"
#include "planner/plan/plan.h"
#include "planner/prediction/ranking.h"

namespace frazil {

// The plan with that schedule, the weight versions it goes with, and the stages that recompute
// where it says which. Whether its placement fits is for make_schedule to say.
Plan with_schedule(Plan plan, NamedSchedule schedule);
Plan with_schedule(Plan plan, DispatchPolicy policy);

// The plan with its lists given outright where its schedule decides by times, for whoever does not
// know them; any other plan as it is. Throws what make_schedule throws.
Plan with_lists(Plan plan, const ModelProfile& profile, const Cluster& cluster);

// The same batch in `micro_batches` micro-batches, equal but for a short last one; pipelines keep
// their shares, rounded to whole micro-batches. Throws InfeasibleError where the batch cannot be
// cut so, or a pipeline would be left with none.
Plan with_micro_batches(Plan plan, int micro_batches);

// The plan with the order and the places of a schedule of PyTorch's: stage s on the device of its
// rank; cut and batch stay the plan's. Backwards that its mask leaves needless are dropped where
// the lists are completed, as everywhere. Throws InputError{file} where stages, micro-batches or
// ranks do not agree.
Plan with_pytorch_schedule(Plan plan, const PytorchSchedule& imported, int devices,
                           const std::string& file);

// The plan with every schedule of the menu, ranked. PipeDream's are left out: without a flush their
// step is not the others' step. With one chunk per device, which its placement says, schedules of
// any number of chunks are left out too: they would be linear ones under another name.
Ranking compare_schedules(const Plan& plan, const ModelProfile& profile, const Cluster& cluster,
                          bool clip);

}  // namespace frazil
