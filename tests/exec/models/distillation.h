#pragma once
// Blockwise distillation in one model (Pipe-BD; Jang et al. 2023): a teacher of k blocks, whose
// blocks a mask freezes, and a student of k blocks, each taught alone. Student block i reads what
// teacher block i - 1 has put out (the samples, for i = 0) and is compared with teacher block i,
// over detached edges. Layers are interleaved, so that runs of layers are convex; for k = 3:
//   block   0  1    1    1       2  3    3    3       4  5
//   layer   T0 S0.a S0.b S0.loss T1 S1.a S1.b S1.loss T2 S2
// A loss layer has no parameters: mean squared error. The last student block carries its loss
// itself: cross entropy against the teacher's probabilities, which are its second output. The
// samples' input is [n, dim] float32.

#include "exec/models/model.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct DistillationConfig {
  int blocks = 3;
  int dim = 16;
  int teacher_inner = 40;
  int student_inner = 8;
  int classes = 10;  // of the last blocks' outputs
};

ModelSpec make_distillation(const DistillationConfig& config);
// Freezes the teacher's blocks: "010101" for k = 3.
std::string teacher_mask(const DistillationConfig& config);
std::vector<Samples> make_distillation_samples(const DistillationConfig& config,
                                               const StepShape& shape);

}  // namespace frazil
