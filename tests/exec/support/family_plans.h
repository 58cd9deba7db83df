#pragma once
// The small vision transformer under each schedule of the menu, by a few numbers.

#include <string>
#include <vector>

#include "planner/plan/schedule_facts.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {

struct FamilyForm {
  ScheduleKind kind = ScheduleKind::kGpipe;
  int devices = 2;
  int chunks = 1;
  int micro_batches = 6;
  std::string mask = "11111";
};

std::string name_of(const FamilyForm& form);

// Returns some legal numbers of chunks per device; the first is the least.
std::vector<int> chunks_of(const ScheduleFacts& facts);

// Gives layers uneven times, for the schedules that decide by times.
ModelProfile with_times(ModelProfile structure);
// Makes links with a latency, and so many bytes a second: none is without limit.
Cluster make_family_cluster(int devices, BytesPerSecond bandwidth = {});

OptimizerConfig make_family_optimizer(bool clip);

// Makes stages as even as eight layers allow, with the weight versions that the schedule goes with.
// Throws InfeasibleError where the schedule has no such form, e.g. dualpipe with an odd number of
// micro-batches.
Plan place_family(const FamilyForm& form, const ModelProfile& structure);

}  // namespace frazil
