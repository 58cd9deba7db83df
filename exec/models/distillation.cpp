#include "exec/models/distillation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "exec/models/boundary.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Where the layers of both networks are in the model.
struct Interleaving {
  std::vector<LayerId> teacher;  // by layer of the teacher
  std::vector<LayerId> student;
  std::vector<LayerId> losses;  // by block
};

Interleaving interleave(const std::vector<DistilledBlock>& blocks) {
  Interleaving places;
  std::size_t next = 0;
  for (const DistilledBlock& block : blocks) {
    while (places.teacher.size() < block.teacher_end) places.teacher.emplace_back(next++);
    while (places.student.size() < block.student_end) places.student.emplace_back(next++);
    places.losses.emplace_back(next++);
  }
  return places;
}

// Returns the block of each layer of a network that ends its blocks before these layers.
std::vector<std::size_t> blocks_by_layer(const std::vector<std::size_t>& ends) {
  std::vector<std::size_t> block_of;
  for (std::size_t b = 0; b < ends.size(); ++b) block_of.resize(ends[b], b);
  return block_of;
}

std::vector<std::size_t> ends_of(const std::vector<DistilledBlock>& blocks,
                                 std::size_t DistilledBlock::*end) {
  std::vector<std::size_t> ends;
  for (const DistilledBlock& block : blocks) ends.push_back(block.*end);
  return ends;
}

// Returns what a network hands on at the end of a block. Requires: it is one tensor.
LayerOutput boundary_at(const ModelSpec& network, std::size_t end) {
  if (end == network.layers.size()) return {LayerId{end - 1}, 0};
  return find_boundary_tensors(network, static_cast<int>(end)).front();
}

bool is_narrow(const ModelSpec& network, const LayerOutput& place) {
  const auto& narrow = network.layers[place.layer.index()].narrow_outputs;
  return std::find(narrow.begin(), narrow.end(), place.output) != narrow.end();
}

// Running statistics become parameters behind the others, as the teacher only reads them. A counter
// is none that evaluation reads: it stays with the function.
LayerSpec make_teacher_layer(LayerSpec layer) {
  const std::size_t own = layer.parameters.size();
  std::vector<std::optional<std::size_t>> place_of;  // by statistic: its parameter
  Tensors counters(layer.statistics.size());
  for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
    const StatisticSpec& statistic = layer.statistics[s];
    if (!statistic.value.is_floating_point()) {
      counters[s] = statistic.value;
      place_of.emplace_back();
      continue;
    }
    place_of.emplace_back(layer.parameters.size());
    ParameterSpec parameter{.name = statistic.name, .shape = statistic.value.sizes().vec()};
    parameter.value = statistic.value;
    layer.parameters.push_back(std::move(parameter));
  }
  for (ParameterSpec& parameter : layer.parameters) {
    parameter.name = "teacher." + parameter.name;
    if (!parameter.tied.empty()) parameter.tied = "teacher." + parameter.tied;
    parameter.trainable = false;
  }
  layer.name = "teacher." + layer.name;
  layer.loss = {};
  layer.count_labels = {};
  layer.statistics.clear();
  layer.moved = {};
  layer.varies_in_training = false;
  if (!mixes_samples(layer, /*training=*/false)) layer.mixes_samples = SampleMixing::kNever;
  layer.forward = [own, place_of, counters,
                   plain = std::move(layer.forward)](const LayerCall& call) {
    const auto end = call.parameters.begin() + static_cast<std::ptrdiff_t>(own);
    const Tensors parameters(call.parameters.begin(), end);
    Tensors statistics = counters;
    for (std::size_t s = 0; s < statistics.size(); ++s) {
      if (place_of[s]) statistics[s] = call.parameters[*place_of[s]];
    }
    return plain({.layer = call.layer,
                  .parameters = parameters,
                  .inputs = call.inputs,
                  .key = call.key,
                  .training = false,
                  .operations = call.operations,
                  .statistics = &statistics});
  };
  return layer;
}

at::Tensor compare(BlockLoss loss, const at::Tensor& student, const at::Tensor& teacher) {
  switch (loss) {
    case BlockLoss::kMeanSquares:
      return at::mse_loss(student, teacher);
    case BlockLoss::kCrossEntropy: {
      const std::int64_t classes = teacher.size(-1);
      return at::cross_entropy_loss(student.reshape({-1, classes}),
                                    at::softmax(teacher.reshape({-1, classes}), -1));
    }
  }
  ENSURE(false, "unknown loss of a block");
}

ModelEdge connect(LayerId from, LayerId to, EdgeKind kind, std::size_t output) {
  return {.from = from, .to = to, .kind = kind, .outputs = {output}};
}

class Maker {
 public:
  explicit Maker(const Distillation& distillation)
      : parts_(distillation), places_(interleave(distillation.blocks)) {}

  ModelSpec make() {
    ModelSpec model;
    model.name = "distill-" + parts_.teacher.name + "-into-" + parts_.student.name;
    model.input_bytes_per_sample = parts_.student.input_bytes_per_sample;
    add_layers(model);
    add_teacher_edges(model);
    add_student_edges(model);
    add_loss_edges(model);
    std::stable_sort(model.edges.begin(), model.edges.end(),
                     [](const ModelEdge& a, const ModelEdge& b) {
                       return std::pair(a.from, a.to) < std::pair(b.from, b.to);
                     });
    model.evaluated =
        std::make_shared<const EvaluatedNetwork>(EvaluatedNetwork{parts_.student, places_.student});
    return model;
  }

 private:
  void add_layers(ModelSpec& model) const {
    std::size_t teacher = 0;
    std::size_t student = 0;
    for (std::size_t b = 0; b < parts_.blocks.size(); ++b) {
      const DistilledBlock& block = parts_.blocks[b];
      const BlockId id{b};
      model.blocks.push_back(block.name);
      for (; teacher < block.teacher_end; ++teacher) {
        add(make_teacher_layer(parts_.teacher.layers[teacher]), id, model);
      }
      for (; student < block.student_end; ++student) {
        LayerSpec layer = parts_.student.layers[student];
        layer.name = "student." + layer.name;
        layer.loss = {};
        layer.count_labels = {};
        add(std::move(layer), id, model);
      }
      const bool is_last = b + 1 == parts_.blocks.size();
      if (is_last) model.blocks.emplace_back(kEndBlock);
      add(make_loss_layer(block), is_last ? BlockId{b + 1} : id, model);
    }
  }

  static void add(LayerSpec layer, BlockId block, ModelSpec& model) {
    layer.block = block;
    model.layers.push_back(std::move(layer));
  }

  LayerSpec make_loss_layer(const DistilledBlock& block) const {
    const LayerOutput teacher = boundary_at(parts_.teacher, block.teacher_end);
    const LayerOutput student = boundary_at(parts_.student, block.student_end);
    const Bytes bytes =
        parts_.teacher.layers[teacher.layer.index()].output_bytes_per_sample.at(teacher.output);
    LayerSpec layer{
        .name = "loss." + block.name,
        .block = BlockId{0},
        .parameters = {},
        .forward = [](const LayerCall& call) -> Tensors { return call.inputs; },
        .output_bytes_per_sample = {bytes, bytes},
        .loss =
            [loss = block.loss](const Tensors& outputs, const at::Tensor& /*labels*/) {
              return compare(loss, outputs.at(1), outputs.at(0));
            },
    };
    if (is_narrow(parts_.teacher, teacher)) layer.narrow_outputs.push_back(0);
    if (is_narrow(parts_.student, student)) layer.narrow_outputs.push_back(1);
    return layer;
  }

  void add_teacher_edges(ModelSpec& model) const {
    for (ModelEdge edge : parts_.teacher.edges) {
      edge.from = places_.teacher[edge.from.index()];
      edge.to = places_.teacher[edge.to.index()];
      model.edges.push_back(std::move(edge));
    }
  }

  // What a student block read of the block before comes from the teacher. Where a layer read it
  // with and without a gradient, one edge brings it twice.
  void add_student_edges(ModelSpec& model) const {
    const std::vector<std::size_t> block_of =
        blocks_by_layer(ends_of(parts_.blocks, &DistilledBlock::student_end));
    for (ModelEdge edge : parts_.student.edges) {
      const std::size_t to = block_of[edge.to.index()];
      if (block_of[edge.from.index()] == to) {
        edge.from = places_.student[edge.from.index()];
      } else {
        const LayerOutput given = boundary_at(parts_.teacher, parts_.blocks[to - 1].teacher_end);
        edge.from = places_.teacher[given.layer.index()];
        edge.kind = EdgeKind::kDetached;
        std::fill(edge.outputs.begin(), edge.outputs.end(), given.output);
      }
      edge.to = places_.student[edge.to.index()];
      ModelEdge& last = model.edges.back();
      if (edge.kind == EdgeKind::kDetached && last.kind == edge.kind && last.from == edge.from &&
          last.to == edge.to) {
        last.outputs.insert(last.outputs.end(), edge.outputs.begin(), edge.outputs.end());
      } else {
        model.edges.push_back(std::move(edge));
      }
    }
  }

  void add_loss_edges(ModelSpec& model) const {
    for (std::size_t b = 0; b < parts_.blocks.size(); ++b) {
      const LayerOutput teacher = boundary_at(parts_.teacher, parts_.blocks[b].teacher_end);
      const LayerOutput student = boundary_at(parts_.student, parts_.blocks[b].student_end);
      model.edges.push_back(connect(places_.teacher[teacher.layer.index()], places_.losses[b],
                                    EdgeKind::kDetached, teacher.output));
      model.edges.push_back(connect(places_.student[student.layer.index()], places_.losses[b],
                                    EdgeKind::kGradient, student.output));
    }
  }

  const Distillation& parts_;
  Interleaving places_;
};

}  // namespace

std::vector<LayerId> find_student_layers(const std::vector<DistilledBlock>& blocks) {
  return interleave(blocks).student;
}

ModelSpec make_distillation(const Distillation& distillation) { return Maker(distillation).make(); }

}  // namespace frazil
