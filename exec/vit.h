#pragma once
// The layered vision transformer: a list of layers, each a pure function of its parameters and its
// input. Layer 0 embeds (block 0); blocks 1..N are two layers each, attention and MLP; the last
// layer is final norm and head and carries the loss (cross entropy of its logits).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "exec/run_config.h"
#include "profiles/units.h"

namespace frazil {

enum class LayerKind { kEmbedding, kAttention, kMlp, kHead };

struct ParameterSpec {
  std::string
      name;  // Hugging Face's, "vit.encoder.layer.0.attention.attention.query_key_value.weight"
  std::vector<std::int64_t> shape;
  // Start values: uniform in +-bound, standard normal when bound < 0 (as embedding tables start;
  // positions told fainter than that take small images several epochs to learn), or `constant`.
  double bound = 0;
  double constant = 0;
};

struct LayerSpec {
  std::string name;
  LayerKind kind = LayerKind::kEmbedding;
  BlockId block;
  std::vector<ParameterSpec> parameters;
};

struct ModelSpec {
  VitConfig config;
  std::vector<std::string> blocks;
  std::vector<LayerSpec> layers;

  bool has_loss(LayerId layer) const { return layer.index() + 1 == layers.size(); }
};

ModelSpec make_vit(const VitConfig& config);

// Where a random draw belongs; the same key draws the same numbers in every plan.
struct RandomKey {
  std::uint64_t seed = 0;
  Step step = 0;
  MicroBatchId micro_batch;
};

// Fresh, contiguous start values, by (seed, layer) alone.
std::vector<at::Tensor> initial_parameters(const ModelSpec& model, LayerId layer,
                                           std::uint64_t seed);

// An operation inside a layer that reads parameters, by their index in the layer.
struct ParametricOperation {
  at::Tensor output;
  std::vector<std::size_t> parameters;
};
using ParametricOperations = std::vector<ParametricOperation>;

// Output of one layer: [n, tokens, dim], of the head [n, classes]. `training` turns dropout on.
// `operations`, where given, is told the parametric operations of a layer other than the embedding:
// together they read each parameter once.
at::Tensor forward_layer(const ModelSpec& model, LayerId layer,
                         const std::vector<at::Tensor>& parameters, const at::Tensor& input,
                         const RandomKey& key, bool training,
                         ParametricOperations* operations = nullptr);

// Mean cross entropy of the micro-batch times `scale` (n_i / N), fp32.
at::Tensor scaled_loss(const at::Tensor& logits, const at::Tensor& labels, double scale);

// Bytes per sample of what a layer hands on, and of what the first layer reads.
Bytes boundary_bytes_per_sample(const ModelSpec& model, LayerId layer);
Bytes input_bytes_per_sample(const ModelSpec& model);

}  // namespace frazil
