#pragma once
// A model, as the executor sees it, has layers in topological order, each a pure function of its
// parameters and of what comes over its edges. Some layers have a loss. Functions make models
// (exec/models/vit.h); nothing here knows a particular one.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/models/parametric_operations.h"
#include "exec/tensors/keyed_random.h"
#include "exec/tensors/samples.h"
#include "exec/tensors/tensors.h"
#include "profiles/model_profile.h"
#include "profiles/precision.h"
#include "profiles/units.h"

namespace frazil {

struct ParameterSpec {
  // The name follows Hugging Face's scheme, as
  // "vit.encoder.layer.0.attention.attention.query_key_value.weight".
  std::string name;
  std::vector<std::int64_t> shape;
  // Start values are uniform in +-bound; standard normal if bound < 0, as embedding tables start
  // (small images take several epochs to learn with fainter positions); `constant` if bound is 0.
  double bound = 0;
  double constant = 0;
  // Parameters of several layers with the same non-empty `tied` are one parameter, which starts as
  // in the first of these layers. Each of them holds a copy, so that layers move freely. A layer
  // with a tied parameter has no other parameters.
  std::string tied = {};
  // False: the parameter never changes. It takes no gradient, no part in reduction and clipping and
  // no optimizer state, whether its block is frozen or not. Uses of a tied parameter agree in this.
  bool trainable = true;
  // The start value, if a file gives it; nobody writes it.
  at::Tensor value = {};
};

// A statistic that a layer keeps over the batches it has seen, as BatchNorm does: what it reads in
// evaluation. Training reads none; each step then folds the statistics of its micro-batches into
// the running one, in the micro-batches' order (exec/reduction/batch_statistics.h).
struct StatisticSpec {
  std::string name;  // as "layer1.0.bn1.running_mean"
  // The start value, float32. A single int64 is a counter, to which each micro-batch adds 1.
  at::Tensor value;
  double momentum = 0;  // the part of the new in the running value; of a counter unused
};

// Specify the parameters of a linear map from `in` to `out` values, which start uniform in
// +-1/sqrt(in) as those of PyTorch's Linear.
ParameterSpec linear_weight(const std::string& name, std::int64_t out, std::int64_t in);
ParameterSpec linear_bias(const std::string& name, std::int64_t out, std::int64_t in);
ParameterSpec constant(const std::string& name, std::int64_t size, double value);
// Returns the size of this many float32 values.
Bytes float_bytes(std::int64_t values);

// A call asks for the forward of a layer. `inputs`: the tensors of its incoming edges, edge by edge
// in order; of a layer without incoming edges, what the samples hold.
struct LayerCall {
  LayerId layer;
  const Tensors& parameters;
  const Tensors& inputs;
  const RandomKey& key;
  bool training = false;  // false for a layer of a frozen block: it runs in eval mode
  // Receives every operation with parameters, if given.
  ParametricOperationList* operations = nullptr;
  // The running statistics, which only evaluation reads. Given for every layer that has some.
  const Tensors* statistics = nullptr;
  // Receives in training the micro-batch's own statistics, if given: a tensor for each of the
  // layer's, undefined for a counter.
  Tensors* batch_statistics = nullptr;
};

// When an output of a layer may depend on other samples than its own, so that no slice of a
// micro-batch has what the whole one has. kInTraining: by the statistics of a batch, which
// evaluation does not read.
enum class SampleMixing { kNever, kInTraining, kAlways };

// What of a layer one step moves. What it does not move keeps its bits, and so do its moments in
// the optimizer. The count of steps by which AdamW corrects moments is the layer's and goes on;
// PyTorch has one for each parameter, so there a parameter that is first moved late moves less.
struct MovedParts {
  std::vector<bool> parameters;  // by trainable parameter
  std::vector<bool> statistics;
};

struct LayerSpec {
  std::string name;
  BlockId block;
  std::vector<ParameterSpec> parameters;
  std::function<Tensors(const LayerCall&)> forward;
  std::vector<Bytes> output_bytes_per_sample;  // by output, in fp32
  // The outputs that are bfloat16 where the layer computes in bf16, and so take half the bytes. A
  // sum with an fp32 input, as of a residual stream, is fp32.
  std::vector<std::size_t> narrow_outputs = {};
  // By output, the first output that is the same tensor, where several layers read one under names
  // of their own, as those of a model file do; empty: each is a tensor of its own.
  std::vector<std::size_t> same_as = {};
  // Returns the mean loss over the micro-batch. Empty for a layer without a loss.
  std::function<at::Tensor(const Tensors& outputs, const at::Tensor& labels)> loss = {};
  // Returns how many of the labels that mean is over, where some count for nothing. A step then
  // weighs its micro-batches by that, so that its loss is the mean over all labels that count; if
  // empty, by their samples.
  std::function<std::int64_t(const at::Tensor& labels)> count_labels = {};
  // True if all parameters are read through ParametricOperations, so that W can be cut off there.
  bool has_seams = true;
  // True if a forward in training may put out anything else than one in evaluation: it draws
  // (dropout of a rate above 0), or it reads or changes statistics of the batch. What such a layer
  // puts out is cached only while its block is frozen.
  bool varies_in_training = false;
  std::vector<StatisticSpec> statistics = {};
  // Returns what the step of this key moves; empty: a step moves all of the layer. Every device
  // that owns the layer asks with the parameters that it holds when the step's gradients are there.
  // The micro-batch of the key says nothing. The statistics of what does not move are undefined in
  // LayerCall::batch_statistics.
  std::function<MovedParts(LayerId layer, const Tensors& parameters, const RandomKey& key)> moved =
      {};
  SampleMixing mixes_samples = SampleMixing::kNever;
  // True if the kernels of a forward may depend on whether gradients are wanted, as those of
  // recurrent layers do. One that keeps nothing, because it will be run again, then runs as the one
  // that will keep all.
  bool follows_gradients = false;
};

// True if the layer mixes samples in training, or in evaluation.
bool mixes_samples(const LayerSpec& layer, bool training);

struct ModelEdge {
  LayerId from;
  LayerId to;
  EdgeKind kind = EdgeKind::kGradient;
  // The outputs of `from` that pass over the edge; all are floating-point on a gradient edge.
  std::vector<std::size_t> outputs;
};

struct EvaluatedNetwork;

struct ModelSpec {
  std::string name;
  std::vector<std::string> blocks;
  std::vector<LayerSpec> layers;
  std::vector<ModelEdge> edges;  // sorted by (from, to), as in the model's profile
  Bytes input_bytes_per_sample;
  Precision precision =
      Precision::kFp32;  // set by with_precision() (exec/models/model_precision.h)
  // What is evaluated in place of the model; null: the model itself.
  std::shared_ptr<const EvaluatedNetwork> evaluated = {};

  bool has_loss(LayerId layer) const { return bool(layers[layer.index()].loss); }
  // Return positions in `edges`, ascending.
  std::vector<std::size_t> edges_into(LayerId layer) const;
  std::vector<std::size_t> edges_from(LayerId layer) const;
};

// A network of layers of a model, with edges and a loss of its own: the student of a distillation,
// whose blocks read each other when it is put together.
struct EvaluatedNetwork {
  ModelSpec network;
  std::vector<LayerId> layer_of;  // by layer of the network: the layer of the model that it is
};

// Returns one edge from each layer to the next, over which all outputs of the layer pass.
std::vector<ModelEdge> make_chain(const std::vector<LayerSpec>& layers);

// Returns fresh, contiguous start values, which depend on (seed, layer) alone.
Tensors initial_parameters(const ModelSpec& model, LayerId layer, std::uint64_t seed);
Tensors initial_statistics(const LayerSpec& layer);

// Returns what a layer reads: tensors of `outputs`, which holds those of earlier layers, or
// `inputs`, those of the samples.
Tensors read_inputs(const ModelSpec& model, LayerId layer, const std::vector<Tensors>& outputs,
                    const Tensors& inputs);
// Runs all layers in eval mode, on the statistics that training starts with, and returns their
// outputs. `parameters`: by layer; `inputs`: as the samples hold them.
std::vector<Tensors> forward_model(const ModelSpec& model,
                                   const std::vector<const Tensors*>& parameters,
                                   const Tensors& inputs);

// Returns what a model's layers put out with some start values: only the shapes and types matter.
std::vector<Tensors> example_outputs(const ModelSpec& model, const Samples& samples);

// Returns the structure of a model as a profile without costs, which is all that activity and
// validation need.
ModelProfile make_structure(const ModelSpec& model, int optimizer_bytes_per_parameter_byte);

}  // namespace frazil
