#include "exec/models/decoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "exec/models/linear_without_bias.h"
#include "exec/models/model_parts.h"

namespace frazil {
namespace {

constexpr double kDecoderNormEpsilon = 1e-5;
constexpr double kTableBound = 0.3;

std::vector<Bytes> hidden_bytes(const DecoderConfig& c) {
  return {float_bytes(std::int64_t{c.tokens} * c.dim)};
}

ParameterSpec table(const std::string& name, const DecoderConfig& c) {
  return {name, {c.vocabulary, c.dim}, kTableBound, 0, "tokens"};
}

// Attention is written out, as in the eager form of GPT-2: its scores are tensors of the graph.
at::Tensor mix_causally(const Tensors& qkv) {
  const std::int64_t t = qkv[0].size(2);
  const double scale = 1.0 / std::sqrt(static_cast<double>(qkv[0].size(3)));
  const at::Tensor later = at::ones({t, t}, qkv[0].options().dtype(at::kBool)).triu(1);
  const at::Tensor scores = (at::matmul(qkv[0], qkv[1].transpose(2, 3)) * scale)
                                .masked_fill(later, -std::numeric_limits<double>::infinity());
  return at::matmul(at::softmax(scores, -1), qkv[2]);
}

at::Tensor attend(const DecoderConfig& c, const ParametricOperations& with, const at::Tensor& x) {
  enum Parameter { kNormWeight, kNormBias, kQkvWeight, kQkvBias, kOutWeight, kOutBias };
  const std::int64_t n = x.size(0);
  const at::Tensor normed = with.layer_norm(x, kNormWeight, kNormBias, kDecoderNormEpsilon);
  const Tensors qkv = with.linear(normed, kQkvWeight, kQkvBias)
                          .view({n, c.tokens, 3, c.heads, c.dim / c.heads})
                          .permute({2, 0, 3, 1, 4})
                          .unbind(0);
  const at::Tensor mixed = mix_causally(qkv).transpose(1, 2).reshape({n, c.tokens, c.dim});
  return with.linear(mixed, kOutWeight, kOutBias);
}

at::Tensor feed_forward(const ParametricOperations& with, const at::Tensor& x) {
  enum Parameter { kNormWeight, kNormBias, kUpWeight, kUpBias, kDownWeight, kDownBias };
  const at::Tensor normed = with.layer_norm(x, kNormWeight, kNormBias, kDecoderNormEpsilon);
  return with.linear(at::gelu(with.linear(normed, kUpWeight, kUpBias), "tanh"), kDownWeight,
                     kDownBias);
}

LayerSpec make_tokens(const DecoderConfig& c) {
  return {.name = "tokens",
          .block = BlockId{0},
          .parameters = {table("transformer.wte.weight", c)},
          .forward = [](const LayerCall& call) -> Tensors {
            return {at::embedding(call.parameters.at(0), call.inputs.at(0))};
          },
          .output_bytes_per_sample = hidden_bytes(c),
          .has_seams = false};
}

LayerSpec make_positions(const DecoderConfig& c) {
  return {.name = "positions",
          .block = BlockId{0},
          .parameters = {{"transformer.wpe.weight", {c.tokens, c.dim}, kTableBound, 0}},
          .forward = [c](const LayerCall& call) -> Tensors {
            const at::Tensor x = call.inputs.at(0) + call.parameters.at(0);
            return {drop(x, c.dropout, call.layer, call.key, call.training)};
          },
          .output_bytes_per_sample = hidden_bytes(c),
          .has_seams = false,
          .varies_in_training = c.dropout > 0};
}

LayerSpec make_attention(const DecoderConfig& c, int index) {
  const std::string p = "transformer.h." + std::to_string(index);
  return {
      .name = "block" + std::to_string(index + 1) + ".attention",
      .block = BlockId{index + 1},
      .parameters = {constant(p + ".ln_1.weight", c.dim, 1), constant(p + ".ln_1.bias", c.dim, 0),
                     linear_weight(p + ".attn.c_attn", 3L * c.dim, c.dim),
                     linear_bias(p + ".attn.c_attn", 3L * c.dim, c.dim),
                     linear_weight(p + ".attn.c_proj", c.dim, c.dim),
                     linear_bias(p + ".attn.c_proj", c.dim, c.dim)},
      .forward = [c](const LayerCall& call) -> Tensors {
        const at::Tensor& x = call.inputs.at(0);
        const at::Tensor branch = attend(c, {call.parameters, call.operations}, x);
        return {x + drop(branch, c.dropout, call.layer, call.key, call.training)};
      },
      .output_bytes_per_sample = hidden_bytes(c),
      .varies_in_training = c.dropout > 0};
}

LayerSpec make_mlp(const DecoderConfig& c, int index) {
  const std::string p = "transformer.h." + std::to_string(index);
  const std::int64_t inner = std::int64_t{c.expansion} * c.dim;
  return {
      .name = "block" + std::to_string(index + 1) + ".mlp",
      .block = BlockId{index + 1},
      .parameters = {constant(p + ".ln_2.weight", c.dim, 1), constant(p + ".ln_2.bias", c.dim, 0),
                     linear_weight(p + ".mlp.c_fc", inner, c.dim),
                     linear_bias(p + ".mlp.c_fc", inner, c.dim),
                     linear_weight(p + ".mlp.c_proj", c.dim, inner),
                     linear_bias(p + ".mlp.c_proj", c.dim, inner)},
      .forward = [c](const LayerCall& call) -> Tensors {
        const at::Tensor& x = call.inputs.at(0);
        const at::Tensor branch = feed_forward({call.parameters, call.operations}, x);
        return {x + drop(branch, c.dropout, call.layer, call.key, call.training)};
      },
      .output_bytes_per_sample = hidden_bytes(c),
      .varies_in_training = c.dropout > 0};
}

LayerSpec make_final_norm(const DecoderConfig& c) {
  return {.name = "norm",
          .block = BlockId{c.blocks + 1},
          .parameters = {constant("transformer.ln_f.weight", c.dim, 1),
                         constant("transformer.ln_f.bias", c.dim, 0)},
          .forward = [](const LayerCall& call) -> Tensors {
            const ParametricOperations with(call.parameters, call.operations);
            return {with.layer_norm(call.inputs.at(0), 0, 1, kDecoderNormEpsilon)};
          },
          .output_bytes_per_sample = hidden_bytes(c)};
}

LayerSpec make_logits(const DecoderConfig& c) {
  return {.name = "logits",
          .block = BlockId{c.blocks + 1},
          .parameters = {table("lm_head.weight", c)},
          .forward = [](const LayerCall& call) -> Tensors {
            return {linear_without_bias(call, call.inputs.at(0), 0)};
          },
          .output_bytes_per_sample = {float_bytes(std::int64_t{c.tokens} * c.vocabulary)},
          .narrow_outputs = {0},
          .loss =
              [c](const Tensors& outputs, const at::Tensor& labels) {
                return at::cross_entropy_loss(outputs.at(0).view({-1, c.vocabulary}),
                                              labels.view({-1}));
              }};
}

}  // namespace

ModelSpec make_decoder(const DecoderConfig& c) {
  ModelSpec model;
  model.name = "decoder-v" + std::to_string(c.vocabulary) + "-t" + std::to_string(c.tokens) + "-d" +
               std::to_string(c.dim) + "-b" + std::to_string(c.blocks) + "-h" +
               std::to_string(c.heads);
  model.input_bytes_per_sample = Bytes{std::int64_t{c.tokens} * 8};
  stack_blocks(model, c.blocks,
               {.embedding = {make_tokens(c), make_positions(c)},
                .attention = [&](int i) { return make_attention(c, i); },
                .mlp = [&](int i) { return make_mlp(c, i); },
                .head = {make_final_norm(c), make_logits(c)}});
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace frazil
