#include "exec/models/distillation_fault.h"

#include <ATen/ATen.h>

#include <map>

#include "exec/models/boundary.h"

namespace frazil {
namespace {

std::string shape_text(const at::Tensor& tensor) {
  std::string text;
  for (const std::int64_t size : tensor.sizes()) {
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return "[" + text + "]";
}

// One of the two networks, and where it is cut.
struct CutNetwork {
  const char* role;
  const ModelSpec& network;
  std::vector<std::size_t> ends;  // by block

  std::size_t begin(std::size_t block) const { return block == 0 ? 0 : ends[block - 1]; }
};

std::string of_block(const CutNetwork& cut, const std::string& block) {
  return "block " + block + " of the " + cut.role;
}

// Returns what is wrong with what a block hands on and reads, whatever the other network does.
std::optional<DistillationFault> find_boundary_fault(const CutNetwork& cut, std::size_t block,
                                                     const std::string& name) {
  const std::size_t begin = cut.begin(block);
  const std::size_t end = cut.ends[block];
  for (std::size_t l = begin; block > 0 && l < end; ++l) {
    if (!cut.network.edges_into(LayerId{l}).empty()) continue;
    return DistillationFault{
        block,
        "layer " + cut.network.layers[l].name + " in " + of_block(cut, name) +
            ", which reads the samples",
        "layers that read the block before: only the first block reads samples"};
  }
  if (end == cut.network.layers.size()) return std::nullopt;
  const std::vector<LayerOutput> crossing =
      find_boundary_tensors(cut.network, static_cast<int>(end));
  const bool is_own = crossing.size() == 1 && crossing.front().layer.index() >= begin;
  if (is_own) return std::nullopt;
  std::string tensors;
  for (const LayerOutput& output : crossing) {
    tensors += (tensors.empty() ? "" : ", ") + cut.network.layers[output.layer.index()].name;
  }
  return DistillationFault{block,
                           std::to_string(crossing.size()) +
                               (crossing.size() == 1 ? " tensor" : " tensors") + " (of " + tensors +
                               ") behind " + of_block(cut, name),
                           "one tensor, of the block itself"};
}

std::optional<DistillationFault> find_loss_fault(const CutNetwork& cut) {
  const std::size_t last = cut.network.layers.size() - 1;
  const std::size_t blocks = cut.ends.size();
  const std::size_t outputs = cut.network.layers[last].output_bytes_per_sample.size();
  if (outputs != 1) {
    return DistillationFault{
        blocks - 1, std::to_string(outputs) + " outputs of the last layer of the " + cut.role,
        "one, which the last block compares"};
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t l = cut.begin(b); l < cut.ends[b]; ++l) {
      if (cut.network.has_loss(LayerId{l}) == (l == last)) continue;
      const bool lacks = l == last;
      return DistillationFault{
          b,
          "layer " + cut.network.layers[l].name + " of the " + cut.role +
              (lacks ? ", the last one, without a loss" : ", which has a loss"),
          "a loss on the last layer alone, whose outputs the last block compares"};
    }
  }
  return std::nullopt;
}

// A student block learns alone, so it has parameters, and all to itself.
std::optional<DistillationFault> find_training_fault(const CutNetwork& student,
                                                     const std::vector<DistilledBlock>& blocks) {
  std::map<std::string, std::size_t> block_of_tied;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    bool trains = false;
    for (std::size_t l = student.begin(b); l < student.ends[b]; ++l) {
      for (const ParameterSpec& parameter : student.network.layers[l].parameters) {
        trains = trains || parameter.trainable;
        if (parameter.tied.empty() || !parameter.trainable) continue;
        if (block_of_tied.emplace(parameter.tied, b).first->second == b) continue;
        return DistillationFault{b,
                                 "parameter " + parameter.name + ", tied to one of another block",
                                 "parameters of its own in every block of the student"};
      }
    }
    if (trains) continue;
    return DistillationFault{b, "no trainable parameter in " + of_block(student, blocks[b].name),
                             "something to train in every block"};
  }
  return std::nullopt;
}

// The last loss is a block of its own.
std::optional<DistillationFault> find_name_fault(const std::vector<DistilledBlock>& blocks) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].name != kEndBlock) continue;
    return DistillationFault{b, "a block called " + blocks[b].name,
                             "another name: the last loss is so called"};
  }
  return std::nullopt;
}

bool has_classes(const at::Tensor& logits) { return logits.dim() >= 2 && logits.size(-1) >= 2; }

at::Tensor output_of(const CutNetwork& cut, std::size_t block,
                     const std::vector<Tensors>& outputs) {
  const std::size_t end = cut.ends[block];
  if (end == outputs.size()) return outputs.back().at(0);
  const LayerOutput place = find_boundary_tensors(cut.network, static_cast<int>(end)).front();
  return outputs[place.layer.index()].at(place.output);
}

}  // namespace

std::optional<DistillationFault> find_fault(const Distillation& distillation,
                                            const Samples& samples) {
  CutNetwork teacher{"teacher", distillation.teacher, {}};
  CutNetwork student{"student", distillation.student, {}};
  for (const DistilledBlock& block : distillation.blocks) {
    teacher.ends.push_back(block.teacher_end);
    student.ends.push_back(block.student_end);
  }
  for (const CutNetwork* cut : {&teacher, &student}) {
    for (std::size_t b = 0; b < distillation.blocks.size(); ++b) {
      if (auto fault = find_boundary_fault(*cut, b, distillation.blocks[b].name)) return fault;
    }
    if (auto fault = find_loss_fault(*cut)) return fault;
  }
  if (auto fault = find_training_fault(student, distillation.blocks)) return fault;
  if (auto fault = find_name_fault(distillation.blocks)) return fault;
  const std::vector<Tensors> taught = example_outputs(distillation.teacher, samples);
  const std::vector<Tensors> learnt = example_outputs(distillation.student, samples);
  for (std::size_t b = 0; b < distillation.blocks.size(); ++b) {
    const at::Tensor a = output_of(teacher, b, taught);
    const at::Tensor s = output_of(student, b, learnt);
    const bool is_alike = a.sizes() == s.sizes() && a.scalar_type() == s.scalar_type();
    if (is_alike && a.is_floating_point()) {
      if (distillation.blocks[b].loss == BlockLoss::kMeanSquares || has_classes(a)) continue;
      return DistillationFault{
          b, shape_text(a) + " behind block " + distillation.blocks[b].name,
          "logits of two classes or more in the last dimension, or the loss \"mse\""};
    }
    return DistillationFault{b,
                             shape_text(a) + " of the teacher and " + shape_text(s) +
                                 " of the student behind block " + distillation.blocks[b].name,
                             "tensors of equal shape and floating-point type"};
  }
  return std::nullopt;
}

}  // namespace frazil
