#include "exec/models/vit.h"

#include <ATen/ATen.h>

#include "exec/models/model_parts.h"

namespace frazil {
namespace {

enum EmbeddingParameter { kPatchWeight, kPatchBias, kClassToken, kPositions };
enum AttentionParameter { kNormWeight, kNormBias, kQkvWeight, kQkvBias, kOutWeight, kOutBias };
enum HeadParameter { kHeadNormWeight, kHeadNormBias, kHeadWeight, kHeadBias };

constexpr double kNormEpsilon = 1e-12;  // Hugging Face ViT's

std::int64_t patch_values(const VitConfig& c) {
  return static_cast<std::int64_t>(c.channels) * c.patch * c.patch;
}
std::int64_t tokens(const VitConfig& c) {
  const std::int64_t side = c.image / c.patch;
  return side * side + 1;
}

Bytes hidden_bytes(const VitConfig& c) { return float_bytes(tokens(c) * c.dim); }

at::Tensor embed(const VitConfig& c, const Tensors& p, const at::Tensor& images) {
  const std::int64_t n = images.size(0);
  const std::int64_t side = c.image / c.patch;
  // A convolution whose stride is its kernel is one matrix product over unfolded patches.
  const at::Tensor patches = images.view({n, c.channels, side, c.patch, side, c.patch})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({n, side * side, patch_values(c)});
  const at::Tensor x = at::linear(patches, p[kPatchWeight], p[kPatchBias]);
  return at::cat({p[kClassToken].expand({n, 1, c.dim}), x}, 1) + p[kPositions];
}

at::Tensor attend(const VitConfig& c, const ParametricOperations& with, const at::Tensor& x) {
  const std::int64_t n = x.size(0);
  const std::int64_t t = x.size(1);
  const at::Tensor normed = with.layer_norm(x, kNormWeight, kNormBias, kNormEpsilon);
  const Tensors qkv = with.linear(normed, kQkvWeight, kQkvBias)
                          .view({n, t, 3, c.heads, c.dim / c.heads})
                          .permute({2, 0, 3, 1, 4})
                          .unbind(0);
  const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
  return with.linear(mixed.transpose(1, 2).reshape({n, t, c.dim}), kOutWeight, kOutBias);
}

at::Tensor transform(const ParametricOperations& with, const at::Tensor& x) {
  const at::Tensor normed = with.layer_norm(x, kNormWeight, kNormBias, kNormEpsilon);
  return with.linear(at::gelu(with.linear(normed, kQkvWeight, kQkvBias)), kOutWeight, kOutBias);
}

at::Tensor classify(const ParametricOperations& with, const at::Tensor& x) {
  return with.linear(with.layer_norm(x.select(1, 0), kHeadNormWeight, kHeadNormBias, kNormEpsilon),
                     kHeadWeight, kHeadBias);
}

LayerSpec make_embedding(const VitConfig& c) {
  const std::string p = "vit.embeddings.patch_embeddings.projection";
  return {.name = "embedding",
          .block = BlockId{0},
          .parameters = {linear_weight(p, c.dim, patch_values(c)),
                         linear_bias(p, c.dim, patch_values(c)),
                         {"vit.embeddings.cls_token", {1, 1, c.dim}, -1, 0},
                         {"vit.embeddings.position_embeddings", {1, tokens(c), c.dim}, -1, 0}},
          .forward = [c](const LayerCall& call) -> Tensors {
            return {embed(c, call.parameters, call.inputs.at(0))};
          },
          .output_bytes_per_sample = {hidden_bytes(c)},
          .has_seams = false};
}

LayerSpec make_attention(const VitConfig& c, int index) {
  const std::string p = "vit.encoder.layer." + std::to_string(index);
  const std::string qkv = p + ".attention.attention.query_key_value";
  const std::string out = p + ".attention.output.dense";
  return {.name = "block" + std::to_string(index + 1) + ".attention",
          .block = BlockId{index + 1},
          .parameters = {constant(p + ".layernorm_before.weight", c.dim, 1),
                         constant(p + ".layernorm_before.bias", c.dim, 0),
                         linear_weight(qkv, 3L * c.dim, c.dim), linear_bias(qkv, 3L * c.dim, c.dim),
                         linear_weight(out, c.dim, c.dim), linear_bias(out, c.dim, c.dim)},
          .forward = [c](const LayerCall& call) -> Tensors {
            const at::Tensor& x = call.inputs.at(0);
            const at::Tensor branch = attend(c, {call.parameters, call.operations}, x);
            return {x + drop(branch, c.dropout, call.layer, call.key, call.training)};
          },
          .output_bytes_per_sample = {hidden_bytes(c)},
          .varies_in_training = c.dropout > 0};
}

LayerSpec make_mlp(const VitConfig& c, int index) {
  const std::string p = "vit.encoder.layer." + std::to_string(index);
  return {.name = "block" + std::to_string(index + 1) + ".mlp",
          .block = BlockId{index + 1},
          .parameters = {constant(p + ".layernorm_after.weight", c.dim, 1),
                         constant(p + ".layernorm_after.bias", c.dim, 0),
                         linear_weight(p + ".intermediate.dense", 4L * c.dim, c.dim),
                         linear_bias(p + ".intermediate.dense", 4L * c.dim, c.dim),
                         linear_weight(p + ".output.dense", c.dim, 4L * c.dim),
                         linear_bias(p + ".output.dense", c.dim, 4L * c.dim)},
          .forward = [c](const LayerCall& call) -> Tensors {
            const at::Tensor& x = call.inputs.at(0);
            const at::Tensor branch = transform({call.parameters, call.operations}, x);
            return {x + drop(branch, c.dropout, call.layer, call.key, call.training)};
          },
          .output_bytes_per_sample = {hidden_bytes(c)},
          .varies_in_training = c.dropout > 0};
}

LayerSpec make_head(const VitConfig& c) {
  return {.name = "head",
          .block = BlockId{c.blocks + 1},
          .parameters = {constant("vit.layernorm.weight", c.dim, 1),
                         constant("vit.layernorm.bias", c.dim, 0),
                         linear_weight("classifier", c.classes, c.dim),
                         linear_bias("classifier", c.classes, c.dim)},
          .forward = [](const LayerCall& call) -> Tensors {
            return {classify({call.parameters, call.operations}, call.inputs.at(0))};
          },
          .output_bytes_per_sample = {float_bytes(c.classes)},
          .narrow_outputs = {0},
          .loss = class_loss};
}

}  // namespace

ModelSpec make_vit(const VitConfig& c) {
  ModelSpec model;
  model.name = "vit-i" + std::to_string(c.image) + "-p" + std::to_string(c.patch) + "-d" +
               std::to_string(c.dim) + "-b" + std::to_string(c.blocks) + "-h" +
               std::to_string(c.heads) + "-c" + std::to_string(c.classes);
  model.input_bytes_per_sample =
      float_bytes(static_cast<std::int64_t>(c.channels) * c.image * c.image);
  stack_blocks(model, c.blocks,
               {.embedding = {make_embedding(c)},
                .attention = [&](int i) { return make_attention(c, i); },
                .mlp = [&](int i) { return make_mlp(c, i); },
                .head = {make_head(c)}});
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace frazil
