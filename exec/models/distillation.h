#pragma once
// Blockwise distillation as one model (Pipe-BD, Jang et al. 2023; DNA, Li et al. 2020): a teacher
// T = T_{k-1} o ... o T_0 that stays as it is, and a student cut at the same boundaries, whose
// blocks learn apart from each other. With a_{-1} the samples and a_i = T_i(a_{i-1}), student block
// i computes S_i(a_{i-1}), never S_i of what another student block has put out, and its loss
// compares that with a_i. So no student block waits for another, or for another's weights.
//
// Layers are interleaved, so that consecutive layers are a stage: T_0 S_0 loss_0 T_1 S_1 loss_1 ...
// A loss layer has no parameters; it reads the teacher's boundary over a detached edge and the
// student's. The edges from the teacher to the student are detached too. Block i of the model is
// T_i, S_i and loss_i: freezing it freezes the student's part. The last loss layer is a block of
// its own behind all others ("end"), so that each student block may freeze.
//
// The teacher always runs in evaluation mode, on running statistics that stay as they are (in
// Pipe-BD's code it runs in training mode, on the batch's own): so what it puts out for a sample is
// the same in every step and however a batch is split, and a stage may slice what it normalises.
// Its parameters are not trainable, and its running statistics are parameters that are not
// trainable.

#include <cstddef>
#include <string>
#include <vector>

#include "exec/models/model.h"

namespace frazil {

// kMeanSquares: the mean of squared differences. kCrossEntropy: the mean cross entropy of the
// student's logits against the teacher's probabilities; classes are the last dimension.
enum class BlockLoss { kMeanSquares, kCrossEntropy };

// The name of the last block of the model.
inline constexpr const char* kEndBlock = "end";

struct DistilledBlock {
  std::string name;
  std::size_t teacher_end = 0;  // one past the last layer that the teacher has in the block
  std::size_t student_end = 0;
  BlockLoss loss = BlockLoss::kMeanSquares;
};

struct Distillation {
  ModelSpec teacher;  // with weights and statistics as start values
  ModelSpec student;
  std::vector<DistilledBlock> blocks;  // ascending; the last one ends both networks
};

// Returns which layer of the model each layer of the student is.
std::vector<LayerId> find_student_layers(const std::vector<DistilledBlock>& blocks);

// Makes the model. What it evaluates is the student, whose blocks then read each other
// (ModelSpec::evaluated). Requires: no fault
// (exec/models/distillation_fault.h).
ModelSpec make_distillation(const Distillation& distillation);

}  // namespace frazil
