#include "tests/exec/models/distillation.h"

#include <ATen/ATen.h>

namespace frazil {
namespace {

constexpr std::size_t kLayersPerBlock = 4;  // teacher, two of the student, loss

std::vector<ParameterSpec> two_linears(const std::string& name, int out, int inner, int in) {
  return {linear_weight(name + ".up", inner, in), linear_bias(name + ".up", inner, in),
          linear_weight(name + ".down", out, inner), linear_bias(name + ".down", out, inner)};
}

at::Tensor run_two_linears(const LayerCall& call, const at::Tensor& x) {
  const ParametricOperations with(call.parameters, call.operations);
  return with.linear(at::gelu(with.linear(x, 0, 1)), 2, 3);
}

LayerSpec make_teacher(const DistillationConfig& c, int index) {
  const std::string name = "teacher." + std::to_string(index);
  const bool is_last = index + 1 == c.blocks;
  const int out = is_last ? c.classes : c.dim;
  return {.name = name,
          .block = BlockId{2 * index},
          .parameters = two_linears(name, out, c.teacher_inner, c.dim),
          .forward = [is_last](const LayerCall& call) -> Tensors {
            const at::Tensor x = run_two_linears(call, call.inputs.at(0));
            return {is_last ? at::softmax(x, -1) : at::tanh(x)};
          },
          .output_bytes_per_sample = {float_bytes(out)},
          .narrow_outputs = {0}};
}

LayerSpec make_student_layer(const DistillationConfig& c, int index, const std::string& part) {
  const std::string name = "student." + std::to_string(index) + "." + part;
  return {.name = name,
          .block = BlockId{2 * index + 1},
          .parameters = two_linears(name, c.dim, c.student_inner, c.dim),
          .forward = [](const LayerCall& call) -> Tensors {
            return {at::tanh(run_two_linears(call, call.inputs.at(0)))};
          },
          .output_bytes_per_sample = {float_bytes(c.dim)},
          .narrow_outputs = {0}};
}

// The loss reads the teacher's output, whose edge begins at an earlier layer, and the student's.
LayerSpec make_loss(const DistillationConfig& c, int index) {
  return {.name = "student." + std::to_string(index) + ".loss",
          .block = BlockId{2 * index + 1},
          .parameters = {},
          .forward = [](const LayerCall& call) -> Tensors { return call.inputs; },
          .output_bytes_per_sample = {float_bytes(c.dim), float_bytes(c.dim)},
          .narrow_outputs = {0, 1},
          .loss =
              [](const Tensors& outputs, const at::Tensor& /*labels*/) {
                return at::mse_loss(outputs.at(1), outputs.at(0));
              }};
}

// The last student reads what the teacher's last block but one has put out, and what its last has.
LayerSpec make_last_student(const DistillationConfig& c) {
  const std::string name = "student." + std::to_string(c.blocks - 1);
  return {.name = name,
          .block = BlockId{2 * c.blocks - 1},
          .parameters = two_linears(name, c.classes, c.student_inner, c.dim),
          .forward = [](const LayerCall& call) -> Tensors {
            return {run_two_linears(call, call.inputs.at(0)), call.inputs.at(1)};
          },
          .output_bytes_per_sample = {float_bytes(c.classes), float_bytes(c.classes)},
          .narrow_outputs = {0, 1},
          .loss =
              [](const Tensors& outputs, const at::Tensor& /*labels*/) {
                return at::cross_entropy_loss(outputs.at(0), outputs.at(1));
              }};
}

ModelEdge connect(std::size_t from, std::size_t to, EdgeKind kind) {
  return {LayerId{from}, LayerId{to}, kind, {0}};
}

std::vector<ModelEdge> connect_all(const DistillationConfig& c) {
  std::vector<ModelEdge> edges;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(c.blocks); ++i) {
    const bool is_last_but_one = i + 2 == static_cast<std::size_t>(c.blocks);
    const std::size_t teacher = kLayersPerBlock * i;
    const std::size_t next = teacher + kLayersPerBlock;
    edges.push_back(connect(teacher, teacher + 3, EdgeKind::kDetached));
    edges.push_back(connect(teacher, next, EdgeKind::kGradient));
    edges.push_back(connect(teacher, next + 1, EdgeKind::kDetached));
    edges.push_back(connect(teacher + 1, teacher + 2, EdgeKind::kGradient));
    edges.push_back(connect(teacher + 2, teacher + 3, EdgeKind::kGradient));
    if (is_last_but_one) edges.push_back(connect(next, next + 1, EdgeKind::kDetached));
  }
  return edges;
}

}  // namespace

ModelSpec make_distillation(const DistillationConfig& c) {
  ModelSpec model;
  model.name = "distillation";
  model.input_bytes_per_sample = float_bytes(c.dim);
  for (int i = 0; i < c.blocks; ++i) {
    model.blocks.push_back("teacher." + std::to_string(i));
    model.blocks.push_back("student." + std::to_string(i));
    model.layers.push_back(make_teacher(c, i));
    if (i + 1 == c.blocks) {
      model.layers.push_back(make_last_student(c));
      continue;
    }
    model.layers.push_back(make_student_layer(c, i, "a"));
    model.layers.push_back(make_student_layer(c, i, "b"));
    model.layers.push_back(make_loss(c, i));
  }
  model.edges = connect_all(c);
  return model;
}

std::string teacher_mask(const DistillationConfig& c) {
  std::string mask;
  for (int i = 0; i < c.blocks; ++i) mask += "01";
  return mask;
}

std::vector<Samples> make_distillation_samples(const DistillationConfig& c,
                                               const StepShape& shape) {
  return draw_micro_batches(shape, [&c](at::Generator& generator, std::int64_t n) {
    return Samples{{draw_normal({n, c.dim}, generator)}, draw_integers({n}, c.classes, generator)};
  });
}

}  // namespace frazil
