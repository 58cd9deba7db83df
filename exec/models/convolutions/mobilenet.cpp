#include "exec/models/convolutions/mobilenet.h"

#include <ATen/ATen.h>

#include <utility>

#include "exec/models/model_parts.h"

namespace frazil {
namespace {

// Returns a layer of one convolution and a ReLU6.
LayerSpec make_convolution_layer(const Convolution& convolution, BlockId block, std::int64_t side) {
  LayerSpec layer = begin_cell({.name = convolution.name,
                                .in = convolution.in,
                                .out = convolution.out,
                                .side = side,
                                .has_norms = convolution.has_norm},
                               block);
  layer.forward = [placed = add_convolution(convolution, layer)](const LayerCall& call) -> Tensors {
    return {at::relu6(apply_convolution(call, placed, call.inputs.at(0)))};
  };
  return layer;
}

LayerSpec make_mobilenet_cell(const CellShape& cell, BlockId block, CellOperation operation) {
  LayerSpec layer = begin_cell(cell, block);
  const InvertedResidual residual(cell, operation, cell.name, layer);
  if (layer.statistics.empty()) {  // zero has no norms
    layer.varies_in_training = false;
    layer.mixes_samples = SampleMixing::kNever;
  }
  layer.forward = [cell, residual](const LayerCall& call) -> Tensors {
    return {add_skip(cell, call.inputs.at(0), residual.run(call))};
  };
  return layer;
}

std::string name_mobilenet(const MobilenetShape& shape, const std::string& kind) {
  std::string name = kind + "-i" + std::to_string(shape.image);
  for (std::size_t s = 0; s < shape.widths.size(); ++s) {
    name += "-w" + std::to_string(shape.widths[s]) + "x" + std::to_string(shape.cells[s]);
  }
  return name + (shape.batch_norm ? "-bn" : "") + "-c" + std::to_string(shape.classes);
}

}  // namespace

std::vector<std::vector<CellShape>> list_cells(const MobilenetShape& shape) {
  std::vector<std::vector<CellShape>> stages(shape.widths.size());
  std::int64_t in = shape.stem;
  std::int64_t side = divide_up<std::int64_t>(shape.image, shape.stem_stride);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    side = divide_up<std::int64_t>(side, shape.strides[s]);
    for (int k = 0; k < shape.cells[s]; ++k) {
      stages[s].push_back({.name = "stage" + std::to_string(s + 1) + "." + std::to_string(k),
                           .in = in,
                           .out = shape.widths[s],
                           .stride = k == 0 ? shape.strides[s] : 1,
                           .side = side,
                           .has_norms = shape.batch_norm});
      in = shape.widths[s];
    }
  }
  return stages;
}

ModelSpec make_stages(
    const MobilenetShape& shape, const std::string& name,
    const std::function<LayerSpec(const CellShape&, BlockId, std::size_t)>& make) {
  ModelSpec model;
  model.name = name_mobilenet(shape, name);
  model.input_bytes_per_sample =
      float_bytes(std::int64_t{shape.channels} * shape.image * shape.image);
  const std::int64_t side = divide_up<std::int64_t>(shape.image, shape.stem_stride);
  model.layers.push_back(make_convolution_layer({.name = "stem",
                                                 .in = shape.channels,
                                                 .out = shape.stem,
                                                 .stride = shape.stem_stride,
                                                 .has_norm = shape.batch_norm},
                                                BlockId{0}, side));
  const std::vector<std::vector<CellShape>> stages = list_cells(shape);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    model.blocks.push_back("stage" + std::to_string(s + 1));
    for (std::size_t k = 0; k < stages[s].size(); ++k) {
      model.layers.push_back(make(stages[s][k], BlockId{s}, k));
    }
  }
  const BlockId last{stages.size()};
  model.blocks.emplace_back("classifier");
  model.layers.push_back(make_convolution_layer({.name = "head",
                                                 .in = shape.widths.back(),
                                                 .out = shape.head,
                                                 .kernel = 1,
                                                 .has_norm = shape.batch_norm},
                                                last, stages.back().back().side));
  model.layers.push_back(make_pooled_classifier(last, shape.head, shape.classes));
  model.edges = make_chain(model.layers);
  return model;
}

ModelSpec make_mobilenet(const MobilenetConfig& config) {
  return make_stages(
      config.shape, "mobilenet", [&](const CellShape& cell, BlockId block, std::size_t place) {
        const CellOperation operation = config.operations.empty()
                                            ? CellOperation::kKernel3Expand6
                                            : config.operations[block.index()][place];
        return make_mobilenet_cell(cell, block, operation);
      });
}

}  // namespace frazil
