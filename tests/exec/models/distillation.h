#pragma once
// A small distillation (exec/models/distillation.h): a teacher of k layers of two linear maps, and
// a student whose blocks have two such layers each, and one in the last; for k = 3:
//   block   0  0    0    0      1  1    1    1      2  2  3
//   layer   T0 S0.a S0.b loss.0 T1 S1.a S1.b loss.1 T2 S2 loss.2
// The samples' input is [n, dim] float32.

#include "exec/models/distillation.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct DistillationConfig {
  int blocks = 3;
  int dim = 16;
  int teacher_inner = 40;
  int student_inner = 8;
  int classes = 10;  // of the last blocks' outputs
};

Distillation make_small_networks(const DistillationConfig& config);
std::vector<Samples> make_distillation_samples(const DistillationConfig& config,
                                               const StepShape& shape);

}  // namespace frazil
