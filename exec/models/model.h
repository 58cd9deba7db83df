#pragma once
// A model as the executor sees it: layers in topological order, each a pure function of its
// parameters and of what comes over its edges, some with a loss. Models are made by functions
// (exec/models/vit.h); nothing here knows a particular one.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/models/parametric_operations.h"
#include "exec/tensors/keyed_random.h"
#include "exec/tensors/tensors.h"
#include "profiles/model_profile.h"
#include "profiles/units.h"

namespace frazil {

struct ParameterSpec {
  std::string
      name;  // Hugging Face's, "vit.encoder.layer.0.attention.attention.query_key_value.weight"
  std::vector<std::int64_t> shape;
  // Start values: uniform in +-bound, standard normal when bound < 0 (as embedding tables start;
  // positions told fainter than that take small images several epochs to learn), or `constant`.
  double bound = 0;
  double constant = 0;
  // Parameters of several layers with one such name are one parameter, and start as in the first.
  // Every such layer holds a copy, so that layers move freely; a layer with one has no others.
  std::string tied = {};
};

// Of a linear map from `in` to `out` values, uniform in +-1/sqrt(in) as PyTorch's Linear starts.
ParameterSpec linear_weight(const std::string& name, std::int64_t out, std::int64_t in);
ParameterSpec linear_bias(const std::string& name, std::int64_t out, std::int64_t in);
ParameterSpec constant(const std::string& name, std::int64_t size, double value);
// Of so many float32 values.
Bytes float_bytes(std::int64_t values);

// The layer whose forward is asked for. `inputs`: over its incoming edges in their order, each
// edge's tensors in order; of a layer without edges, what the samples hold.
struct LayerCall {
  LayerId layer;
  const Tensors& parameters;
  const Tensors& inputs;
  const RandomKey& key;
  bool training = false;  // of a frozen layer false: no dropout, no running statistics
  // Where given, is told of every operation with parameters.
  ParametricOperationList* operations = nullptr;
};

struct LayerSpec {
  std::string name;
  BlockId block;
  std::vector<ParameterSpec> parameters;
  std::function<Tensors(const LayerCall&)> forward;
  std::vector<Bytes> output_bytes_per_sample;  // by output
  // Of a layer with a loss: its mean over the micro-batch.
  std::function<at::Tensor(const Tensors& outputs, const at::Tensor& labels)> loss = {};
  // Whether all parameters are read through ParametricOperations, so that W can be cut off there.
  bool has_seams = true;
};

struct ModelEdge {
  LayerId from;
  LayerId to;
  EdgeKind kind = EdgeKind::kGradient;
  std::vector<std::size_t> outputs;  // of `from`, that pass; with a gradient edge all floating
};

struct ModelSpec {
  std::string name;
  std::vector<std::string> blocks;
  std::vector<LayerSpec> layers;
  std::vector<ModelEdge> edges;  // sorted by (from, to), as in the model's profile
  Bytes input_bytes_per_sample;

  bool has_loss(LayerId layer) const { return bool(layers[layer.index()].loss); }
  // By position in `edges`, ascending.
  std::vector<std::size_t> edges_into(LayerId layer) const;
  std::vector<std::size_t> edges_from(LayerId layer) const;
};

// One edge from each layer to the next, with all its outputs.
std::vector<ModelEdge> make_chain(const std::vector<LayerSpec>& layers);

// Fresh, contiguous start values, by (seed, layer) alone.
Tensors initial_parameters(const ModelSpec& model, LayerId layer, std::uint64_t seed);

// What a layer reads: from the outputs of earlier layers, or from the samples.
Tensors read_inputs(const ModelSpec& model, LayerId layer, const std::vector<Tensors>& outputs,
                    const Tensors& inputs);
// Outputs of all layers, in evaluation: `parameters` by layer, `inputs` as the samples hold them.
std::vector<Tensors> forward_model(const ModelSpec& model,
                                   const std::vector<const Tensors*>& parameters,
                                   const Tensors& inputs);

// The structure of a model as a profile without costs: what activity and validation need.
ModelProfile make_structure(const ModelSpec& model, int optimizer_bytes_per_parameter_byte);

}  // namespace frazil
