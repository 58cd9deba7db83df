// Reads the choice of exec/models/choice/distillation_choice.h.
#include "exec/models/choice/distillation_choice.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "exec/models/distillation_fault.h"
#include "profiles/error.h"
#include "profiles/json_settings.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

NetworkChoice parse_part(const JsonCursor& object, const fs::path& folder) {
  JsonFields fields(object);
  const std::size_t kind = take_name(fields, "kind", kNetworkKinds);
  return parse_network(fields, kind, folder);
}

bool has_weights(const ModelSpec& network) {
  return std::all_of(network.layers.begin(), network.layers.end(), [](const LayerSpec& layer) {
    return std::all_of(layer.parameters.begin(), layer.parameters.end(),
                       [](const ParameterSpec& own) { return own.value.defined(); });
  });
}

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + json_string(name);
  return text;
}

// Finds blocks by their names, each behind the one before.
class BlockNames {
 public:
  BlockNames(const char* role, const std::vector<std::string>& names)
      : role_(role), names_(names) {}

  std::string take(const JsonCursor& given) {
    const std::string name = given.text();
    const auto found = std::find(names_.begin() + next_, names_.end(), name);
    if (found == names_.end()) {
      const std::vector<std::string> left(names_.begin() + next_, names_.end());
      given.fail(given.describe(),
                 left.empty() ? "no more blocks: the " + std::string(role_) + " has no other"
                              : "a block of the " + std::string(role_) +
                                    " behind the one before: " + list_names(left));
    }
    next_ = found - names_.begin() + 1;
    return name;
  }
  bool is_at_end() const { return static_cast<std::size_t>(next_) == names_.size(); }

 private:
  const char* role_;
  const std::vector<std::string>& names_;
  std::ptrdiff_t next_ = 0;
};

void set_losses(std::vector<BlockPair>& blocks) {
  for (BlockPair& block : blocks) block.loss = BlockLoss::kMeanSquares;
  blocks.back().loss = BlockLoss::kCrossEntropy;
}

std::vector<BlockPair> pair_all(const JsonCursor& student, const ModelSpec& teacher,
                                const ModelSpec& network) {
  if (teacher.blocks.size() != network.blocks.size()) {
    student.fail(std::to_string(network.blocks.size()) + " blocks, where the teacher has " +
                     std::to_string(teacher.blocks.size()),
                 "equally many, or \"blocks\" that say which belong together");
  }
  std::vector<BlockPair> blocks;
  for (std::size_t b = 0; b < network.blocks.size(); ++b) {
    blocks.push_back({teacher.blocks[b], network.blocks[b]});
  }
  set_losses(blocks);
  return blocks;
}

std::vector<BlockPair> parse_pairs(const JsonCursor& list, const ModelSpec& teacher,
                                   const ModelSpec& student) {
  const std::vector<JsonCursor> items = list.items();
  if (items.empty()) list.fail("no block", "the blocks of the distillation, the two heads last");
  std::vector<BlockPair> blocks(items.size());
  set_losses(blocks);
  BlockNames teachers("teacher", teacher.blocks);
  BlockNames students("student", student.blocks);
  for (std::size_t b = 0; b < items.size(); ++b) {
    if (items[b].is_string()) {
      blocks[b].teacher = teachers.take(items[b]);
      blocks[b].student = students.take(items[b]);
      continue;
    }
    JsonFields fields(items[b]);
    blocks[b].teacher = teachers.take(fields.required("teacher"));
    blocks[b].student = students.take(fields.required("student"));
    if (const Given loss = fields.optional("loss")) {
      blocks[b].loss = static_cast<BlockLoss>(read_name(loss, kBlockLosses));
    }
    fields.finish();
  }
  if (!teachers.is_at_end() || !students.is_at_end()) {
    items.back().fail("a last entry that leaves blocks of a network over",
                      "the names of the two heads, " + json_string(teacher.blocks.back()) +
                          " and " + json_string(student.blocks.back()));
  }
  return blocks;
}

// One sample that holds zeros, which every model takes.
Samples blank_sample(const SampleForm& form) {
  Samples samples;
  for (const InputForm& input : form.inputs) {
    std::vector<std::int64_t> shape{1};
    shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    const at::ScalarType type = input.element == Element::kFloat32 ? at::kFloat
                                : input.element == Element::kInt64 ? at::kLong
                                                                   : at::kBool;
    samples.inputs.push_back(at::zeros(shape, type));
  }
  return samples;
}

}  // namespace

DistillationChoice parse_distillation(JsonFields& fields, const fs::path& folder) {
  DistillationChoice choice;
  const JsonCursor teacher = fields.required("teacher");
  const JsonCursor student = fields.required("student");
  choice.teacher = parse_part(teacher, folder);
  choice.student = parse_part(student, folder);
  const Given weights = fields.optional("teacher_weights");
  const Given blocks = fields.optional("blocks");
  fields.finish();
  if (weights) {
    if (weights->text().empty()) weights->fail(weights->describe(), "the path of a weights file");
    choice.teacher_weights = fs::absolute(folder / weights->text()).lexically_normal().string();
  }
  if (sample_form(choice.teacher).inputs != sample_form(choice.student).inputs) {
    student.fail("a student that reads other samples than its teacher", "equal inputs of both");
  }
  const ModelSpec whole_teacher = make_network(choice.teacher);
  const ModelSpec whole_student = make_network(choice.student);
  choice.blocks = blocks ? parse_pairs(*blocks, whole_teacher, whole_student)
                         : pair_all(student, whole_teacher, whole_student);
  if (!weights && !has_weights(whole_teacher)) {
    teacher.fail("a teacher without weights",
                 "\"teacher_weights\" beside it, a file that training it has left");
  }
  const auto fault = find_fault(make_parts(choice), blank_sample(sample_form(choice.student)));
  if (fault) {
    const JsonCursor place = blocks ? blocks->items()[fault->block] : student;
    place.fail(fault->found, fault->expected);
  }
  return choice;
}

}  // namespace frazil
