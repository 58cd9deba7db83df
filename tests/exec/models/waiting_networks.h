#pragma once
// A distillation whose layers wait in place of computing: their devices' cores stay idle, so that
// more devices than cores take the times that are given. A student's layer waits in its forward and
// in its backward. Samples' inputs are [n, 4] float32.

#include <map>
#include <vector>

#include "exec/models/distillation.h"
#include "profiles/model_profile.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

// What a block of the teacher and of the student waits, by the samples that it is given.
struct BlockWaits {
  std::map<std::int64_t, Duration> teacher;
  std::map<std::int64_t, Duration> forward;
  std::map<std::int64_t, Duration> backward;
};

Distillation make_waiting_networks(const std::vector<BlockWaits>& waits);
// Returns the structure of make_distillation() of these networks with the given times as costs; all
// else takes no time.
ModelProfile make_waiting_profile(const ModelSpec& model, const std::vector<BlockWaits>& waits);
Samples make_waiting_samples(std::int64_t count, std::uint64_t seed);

}  // namespace frazil
