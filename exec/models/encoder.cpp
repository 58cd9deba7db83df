#include "exec/models/encoder.h"

#include <ATen/ATen.h>

#include "exec/models/model_parts.h"

namespace frazil {
namespace {

constexpr double kEncoderNormEpsilon = 1e-12;
constexpr double kMasked = -1e4;

std::vector<Bytes> hidden_and_mask_bytes(const EncoderConfig& c) {
  return {float_bytes(std::int64_t{c.tokens} * c.dim), float_bytes(c.tokens)};
}

ParameterSpec table(const std::string& name, int rows, const EncoderConfig& c) {
  return {name, {rows, c.dim}, -1, 0};
}

Tensors embed(const EncoderConfig& c, const LayerCall& call) {
  enum Parameter { kWords, kPositions, kSegments, kNormWeight, kNormBias };
  const Tensors& p = call.parameters;
  const at::Tensor x = at::embedding(p[kWords], call.inputs.at(0)) + p[kPositions] +
                       at::embedding(p[kSegments], call.inputs.at(1));
  const at::Tensor normed =
      at::layer_norm(x, {c.dim}, p[kNormWeight], p[kNormBias], kEncoderNormEpsilon);
  const at::Tensor& is_token = call.inputs.at(2);
  const at::Tensor mask =
      at::zeros({is_token.size(0), 1, 1, c.tokens}, x.options().dtype(at::kFloat))
          .masked_fill(is_token.view({-1, 1, 1, c.tokens}).logical_not(), kMasked);
  return {drop(normed, c.dropout, call.layer, call.key, call.training), mask};
}

Tensors attend(const EncoderConfig& c, const LayerCall& call) {
  enum Parameter { kQkvWeight, kQkvBias, kMixWeight, kMixBias, kNormWeight, kNormBias };
  const ParametricOperations with(call.parameters, call.operations);
  const at::Tensor& x = call.inputs.at(0);
  const at::Tensor& mask = call.inputs.at(1);
  const std::int64_t n = x.size(0);
  const Tensors qkv = with.linear(x, kQkvWeight, kQkvBias)
                          .view({n, c.tokens, 3, c.heads, c.dim / c.heads})
                          .permute({2, 0, 3, 1, 4})
                          .unbind(0);
  const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask)
                               .transpose(1, 2)
                               .reshape({n, c.tokens, c.dim});
  const at::Tensor branch = drop(with.linear(mixed, kMixWeight, kMixBias), c.dropout, call.layer,
                                 call.key, call.training);
  return {with.layer_norm(x + branch, kNormWeight, kNormBias, kEncoderNormEpsilon), mask};
}

Tensors transform(const EncoderConfig& c, const LayerCall& call) {
  enum Parameter { kUpWeight, kUpBias, kDownWeight, kDownBias, kNormWeight, kNormBias };
  const ParametricOperations with(call.parameters, call.operations);
  const at::Tensor& x = call.inputs.at(0);
  const at::Tensor inner = at::gelu(with.linear(x, kUpWeight, kUpBias));
  const at::Tensor branch = drop(with.linear(inner, kDownWeight, kDownBias), c.dropout, call.layer,
                                 call.key, call.training);
  return {with.layer_norm(x + branch, kNormWeight, kNormBias, kEncoderNormEpsilon),
          call.inputs.at(1)};
}

Tensors classify(const LayerCall& call) {
  enum Parameter { kPoolWeight, kPoolBias, kClassWeight, kClassBias };
  const ParametricOperations with(call.parameters, call.operations);
  const at::Tensor first = call.inputs.at(0).select(1, 0);
  const at::Tensor pooled = at::tanh(with.linear(first, kPoolWeight, kPoolBias));
  return {with.linear(pooled, kClassWeight, kClassBias)};
}

LayerSpec make_embedding(const EncoderConfig& c) {
  return {.name = "embedding",
          .block = BlockId{0},
          .parameters = {table("bert.embeddings.word_embeddings.weight", c.vocabulary, c),
                         table("bert.embeddings.position_embeddings.weight", c.tokens, c),
                         table("bert.embeddings.token_type_embeddings.weight", c.segments, c),
                         constant("bert.embeddings.LayerNorm.weight", c.dim, 1),
                         constant("bert.embeddings.LayerNorm.bias", c.dim, 0)},
          .forward = [c](const LayerCall& call) { return embed(c, call); },
          .output_bytes_per_sample = hidden_and_mask_bytes(c),
          .has_seams = false,
          .varies_in_training = c.dropout > 0};
}

LayerSpec make_attention(const EncoderConfig& c, int index) {
  const std::string p = "bert.encoder.layer." + std::to_string(index) + ".attention";
  return {.name = "block" + std::to_string(index + 1) + ".attention",
          .block = BlockId{index + 1},
          .parameters = {linear_weight(p + ".self.query_key_value", 3L * c.dim, c.dim),
                         linear_bias(p + ".self.query_key_value", 3L * c.dim, c.dim),
                         linear_weight(p + ".output.dense", c.dim, c.dim),
                         linear_bias(p + ".output.dense", c.dim, c.dim),
                         constant(p + ".output.LayerNorm.weight", c.dim, 1),
                         constant(p + ".output.LayerNorm.bias", c.dim, 0)},
          .forward = [c](const LayerCall& call) { return attend(c, call); },
          .output_bytes_per_sample = hidden_and_mask_bytes(c),
          .varies_in_training = c.dropout > 0};
}

LayerSpec make_mlp(const EncoderConfig& c, int index) {
  const std::string p = "bert.encoder.layer." + std::to_string(index);
  const std::int64_t inner = std::int64_t{c.expansion} * c.dim;
  return {.name = "block" + std::to_string(index + 1) + ".mlp",
          .block = BlockId{index + 1},
          .parameters = {linear_weight(p + ".intermediate.dense", inner, c.dim),
                         linear_bias(p + ".intermediate.dense", inner, c.dim),
                         linear_weight(p + ".output.dense", c.dim, inner),
                         linear_bias(p + ".output.dense", c.dim, inner),
                         constant(p + ".output.LayerNorm.weight", c.dim, 1),
                         constant(p + ".output.LayerNorm.bias", c.dim, 0)},
          .forward = [c](const LayerCall& call) { return transform(c, call); },
          .output_bytes_per_sample = hidden_and_mask_bytes(c),
          .varies_in_training = c.dropout > 0};
}

LayerSpec make_head(const EncoderConfig& c) {
  return {.name = "head",
          .block = BlockId{c.blocks + 1},
          .parameters = {linear_weight("bert.pooler.dense", c.dim, c.dim),
                         linear_bias("bert.pooler.dense", c.dim, c.dim),
                         linear_weight("classifier", c.classes, c.dim),
                         linear_bias("classifier", c.classes, c.dim)},
          .forward = [](const LayerCall& call) { return classify(call); },
          .output_bytes_per_sample = {float_bytes(c.classes)},
          .narrow_outputs = {0},
          .loss = class_loss};
}

std::vector<ModelEdge> connect(const std::vector<LayerSpec>& layers) {
  std::vector<ModelEdge> edges;
  for (std::size_t l = 1; l < layers.size(); ++l) {
    edges.push_back({LayerId{l - 1}, LayerId{l}, EdgeKind::kGradient, {0}});
    if (l + 1 == layers.size()) continue;
    edges.push_back({LayerId{l - 1}, LayerId{l}, EdgeKind::kDetached, {1}});
  }
  return edges;
}

}  // namespace

ModelSpec make_encoder(const EncoderConfig& c) {
  ModelSpec model;
  model.name = "encoder-v" + std::to_string(c.vocabulary) + "-t" + std::to_string(c.tokens) + "-d" +
               std::to_string(c.dim) + "-b" + std::to_string(c.blocks) + "-h" +
               std::to_string(c.heads) + "-c" + std::to_string(c.classes);
  model.input_bytes_per_sample = Bytes{std::int64_t{c.tokens} * (8 + 8 + 8)};
  stack_blocks(model, c.blocks,
               {.embedding = {make_embedding(c)},
                .attention = [&](int i) { return make_attention(c, i); },
                .mlp = [&](int i) { return make_mlp(c, i); },
                .head = {make_head(c)}});
  model.edges = connect(model.layers);
  return model;
}

}  // namespace frazil
