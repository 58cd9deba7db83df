#pragma once
// The distillation of a teacher into a student, block by block (exec/models/distillation.h), as a
// run configuration names it:
//   {"kind": "distillation", "teacher": {"kind": "vgg", ...}, "teacher_weights": "t.safetensors",
//    "student": {"kind": "vgg", "separable": true, ...},
//    "blocks": ["stage1", {"teacher": "stage2", "student": "narrow2", "loss": "mse"}, ...]}
// - "teacher" and "student" are any two networks that read the same samples.
// - "teacher_weights" is a safetensors file that `frazil train` or another program has left
//   (exec/models/choice/start_weights.h). A teacher of kind "file" may go without: its file holds
//   the weights that it was exported with.
// - "blocks" names for each block of the distillation the last of the teacher's and of the
//   student's own blocks that belong to it; one name stands for both. The last entry names the two
//   heads. Without the key the networks' own blocks are taught one by one.
// - "loss" is "mse", which all blocks but the last have without the key, or "cross-entropy", which
//   the last has.

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "exec/models/choice/network_choice.h"
#include "exec/models/distillation.h"

namespace frazil {

// The names by BlockLoss.
inline constexpr std::array<std::string_view, 2> kBlockLosses{"mse", "cross-entropy"};

struct BlockPair {
  std::string teacher;
  std::string student;
  BlockLoss loss = BlockLoss::kMeanSquares;
  friend bool operator==(const BlockPair&, const BlockPair&) = default;
};

struct DistillationChoice {
  std::string teacher_weights;  // empty: the teacher's file has them
  NetworkChoice teacher;
  NetworkChoice student;
  std::vector<BlockPair> blocks;
  friend bool operator==(const DistillationChoice&, const DistillationChoice&) = default;
};

// Parses all keys but "kind". Paths are taken from `folder`. Makes both networks and runs each on
// one sample, to see what crosses their boundaries. Throws InputError in one sentence for a teacher
// without weights, for names that no block has or that do not ascend, and for networks whose
// boundaries do not match (exec/models/distillation_fault.h).
DistillationChoice parse_distillation(JsonFields& fields, const std::filesystem::path& folder);
std::string to_json(const DistillationChoice& choice);
// Returns how many blocks a freeze mask of the distillation has.
int count_blocks(const DistillationChoice& choice);

// Makes both networks, the teacher with its weights as start values, and finds where they are cut.
// Throws InputError as start_from() does.
Distillation make_parts(const DistillationChoice& choice);

// Returns where the networks are cut.
std::vector<DistilledBlock> find_blocks(const DistillationChoice& choice, const ModelSpec& teacher,
                                        const ModelSpec& student);
// Returns which layer of the distillation each layer of the student is.
std::vector<LayerId> find_student_layers(const DistillationChoice& choice);

}  // namespace frazil
