#include "exec/models/choice/distillation_choice.h"

#include <algorithm>
#include <utility>

#include "exec/disk/tensor_file.h"
#include "exec/models/choice/start_weights.h"
#include "profiles/error.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

std::vector<std::size_t> find_ends(const ModelSpec& network) {
  std::vector<std::size_t> ends(network.blocks.size());
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    ends[network.layers[l].block.index()] = l + 1;
  }
  return ends;
}

// Returns one past the last layer of the block of this name. Requires: there is one.
std::size_t end_of(const ModelSpec& network, const std::string& block) {
  const auto found = std::find(network.blocks.begin(), network.blocks.end(), block);
  ENSURE(found != network.blocks.end(), "a block of the network");
  return find_ends(network)[static_cast<std::size_t>(found - network.blocks.begin())];
}

// Says what the file is for, which its path alone need not.
void take_weights(const DistillationChoice& choice, ModelSpec& teacher) {
  try {
    start_from(TensorFile(choice.teacher_weights), choice.teacher, teacher);
  } catch (const InputError& error) {
    throw InputError(error.file(), error.line(), error.found(),
                     error.expected() + ", as \"teacher_weights\" of the run names it");
  }
}

}  // namespace

std::string to_json(const DistillationChoice& choice) {
  std::string blocks;
  for (const BlockPair& block : choice.blocks) {
    blocks +=
        (blocks.empty() ? "" : ", ") +
        object_text({{"teacher", json_string(block.teacher)},
                     {"student", json_string(block.student)},
                     {"loss", json_string(kBlockLosses.at(static_cast<std::size_t>(block.loss)))}});
  }
  Members members{{"kind", json_string("distillation")}, {"teacher", to_json(choice.teacher)}};
  if (!choice.teacher_weights.empty()) {
    members.emplace_back("teacher_weights", json_string(choice.teacher_weights));
  }
  members.emplace_back("student", to_json(choice.student));
  members.emplace_back("blocks", "[" + blocks + "]");
  return object_text(members);
}

// The last loss is a block of its own (exec/models/distillation.h).
int count_blocks(const DistillationChoice& choice) {
  return static_cast<int>(choice.blocks.size()) + 1;
}

std::vector<DistilledBlock> find_blocks(const DistillationChoice& choice, const ModelSpec& teacher,
                                        const ModelSpec& student) {
  std::vector<DistilledBlock> blocks;
  for (const BlockPair& pair : choice.blocks) {
    blocks.push_back({.name = pair.student,
                      .teacher_end = end_of(teacher, pair.teacher),
                      .student_end = end_of(student, pair.student),
                      .loss = pair.loss});
  }
  return blocks;
}

Distillation make_parts(const DistillationChoice& choice) {
  Distillation parts{.teacher = make_network(choice.teacher),
                     .student = make_network(choice.student),
                     .blocks = {}};
  if (!choice.teacher_weights.empty()) {
    take_weights(choice, parts.teacher);
  }
  parts.blocks = find_blocks(choice, parts.teacher, parts.student);
  return parts;
}

std::vector<LayerId> find_student_layers(const DistillationChoice& choice) {
  return find_student_layers(
      find_blocks(choice, make_network(choice.teacher), make_network(choice.student)));
}

}  // namespace frazil
