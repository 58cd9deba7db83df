#include "exec/vit.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "profiles/error.h"

namespace frazil {
namespace {

enum EmbeddingParameter { kPatchWeight, kPatchBias, kClassToken, kPositions };
enum AttentionParameter { kNormWeight, kNormBias, kQkvWeight, kQkvBias, kOutWeight, kOutBias };
enum HeadParameter { kHeadNormWeight, kHeadNormBias, kHeadWeight, kHeadBias };

constexpr double kNormEpsilon = 1e-12;  // Hugging Face ViT's

// splitmix64 (Steele, Lea, Flood 2014): spreads neighbouring keys over unrelated seeds.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

at::Generator make_generator(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  return at::make_generator<at::CPUGeneratorImpl>(mix(mix(mix(mix(a) + b) + c) + d));
}

ParameterSpec linear_weight(const std::string& name, std::int64_t out, std::int64_t in) {
  return {name + ".weight", {out, in}, 1.0 / std::sqrt(static_cast<double>(in)), 0};
}
ParameterSpec linear_bias(const std::string& name, std::int64_t out, std::int64_t in) {
  return {name + ".bias", {out}, 1.0 / std::sqrt(static_cast<double>(in)), 0};
}
ParameterSpec constant(const std::string& name, std::int64_t size, double value) {
  return {name, {size}, 0, value};
}

std::int64_t patch_values(const VitConfig& c) {
  return static_cast<std::int64_t>(c.channels) * c.patch * c.patch;
}
std::int64_t tokens(const VitConfig& c) {
  const std::int64_t side = c.image / c.patch;
  return side * side + 1;
}

LayerSpec make_embedding(const VitConfig& c) {
  const std::string p = "vit.embeddings.patch_embeddings.projection";
  return {"embedding",
          LayerKind::kEmbedding,
          BlockId{0},
          {linear_weight(p, c.dim, patch_values(c)),
           linear_bias(p, c.dim, patch_values(c)),
           {"vit.embeddings.cls_token", {1, 1, c.dim}, -1, 0},
           {"vit.embeddings.position_embeddings", {1, tokens(c), c.dim}, -1, 0}}};
}

LayerSpec make_attention(const VitConfig& c, int index) {
  const std::string p = "vit.encoder.layer." + std::to_string(index);
  const std::string qkv = p + ".attention.attention.query_key_value";
  const std::string out = p + ".attention.output.dense";
  return {"block" + std::to_string(index + 1) + ".attention",
          LayerKind::kAttention,
          BlockId{index + 1},
          {constant(p + ".layernorm_before.weight", c.dim, 1),
           constant(p + ".layernorm_before.bias", c.dim, 0), linear_weight(qkv, 3L * c.dim, c.dim),
           linear_bias(qkv, 3L * c.dim, c.dim), linear_weight(out, c.dim, c.dim),
           linear_bias(out, c.dim, c.dim)}};
}

LayerSpec make_mlp(const VitConfig& c, int index) {
  const std::string p = "vit.encoder.layer." + std::to_string(index);
  return {"block" + std::to_string(index + 1) + ".mlp",
          LayerKind::kMlp,
          BlockId{index + 1},
          {constant(p + ".layernorm_after.weight", c.dim, 1),
           constant(p + ".layernorm_after.bias", c.dim, 0),
           linear_weight(p + ".intermediate.dense", 4L * c.dim, c.dim),
           linear_bias(p + ".intermediate.dense", 4L * c.dim, c.dim),
           linear_weight(p + ".output.dense", c.dim, 4L * c.dim),
           linear_bias(p + ".output.dense", c.dim, 4L * c.dim)}};
}

LayerSpec make_head(const VitConfig& c) {
  return {
      "head",
      LayerKind::kHead,
      BlockId{c.blocks + 1},
      {constant("vit.layernorm.weight", c.dim, 1), constant("vit.layernorm.bias", c.dim, 0),
       linear_weight("classifier", c.classes, c.dim), linear_bias("classifier", c.classes, c.dim)}};
}

at::Tensor drop(const at::Tensor& x, double rate, LayerId layer, const RandomKey& key,
                bool training) {
  if (!training || rate == 0) return x;
  // at::dropout takes no generator, so the mask is drawn here, by key.
  at::Generator generator = make_generator(key.seed, static_cast<std::uint64_t>(key.step),
                                           layer.index(), key.micro_batch.index());
  const at::Tensor mask = at::empty_like(x).bernoulli_(1 - rate, generator).div_(1 - rate);
  return x * mask;
}

at::Tensor embed(const VitConfig& c, const std::vector<at::Tensor>& p, const at::Tensor& images) {
  const std::int64_t n = images.size(0);
  const std::int64_t side = c.image / c.patch;
  // A convolution whose stride is its kernel is one matrix product over unfolded patches.
  const at::Tensor patches = images.view({n, c.channels, side, c.patch, side, c.patch})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({n, side * side, patch_values(c)});
  const at::Tensor x = at::linear(patches, p[kPatchWeight], p[kPatchBias]);
  return at::cat({p[kClassToken].expand({n, 1, c.dim}), x}, 1) + p[kPositions];
}

// The operations with parameters, which report to whoever listens.
class Operations {
 public:
  Operations(const std::vector<at::Tensor>& parameters, ParametricOperations* listener)
      : parameters_(parameters), listener_(listener) {}

  at::Tensor linear(const at::Tensor& x, std::size_t weight, std::size_t bias) const {
    return report(at::linear(x, parameters_[weight], parameters_[bias]), weight, bias);
  }
  at::Tensor layer_norm(const at::Tensor& x, std::size_t weight, std::size_t bias) const {
    const at::Tensor& scale = parameters_[weight];
    return report(at::layer_norm(x, scale.sizes(), scale, parameters_[bias], kNormEpsilon), weight,
                  bias);
  }

 private:
  at::Tensor report(at::Tensor output, std::size_t weight, std::size_t bias) const {
    if (listener_ != nullptr) listener_->push_back({output, {weight, bias}});
    return output;
  }

  const std::vector<at::Tensor>& parameters_;
  ParametricOperations* listener_;
};

at::Tensor attend(const VitConfig& c, const Operations& with, const at::Tensor& x) {
  const std::int64_t n = x.size(0);
  const std::int64_t t = x.size(1);
  const at::Tensor normed = with.layer_norm(x, kNormWeight, kNormBias);
  const std::vector<at::Tensor> qkv = with.linear(normed, kQkvWeight, kQkvBias)
                                          .view({n, t, 3, c.heads, c.dim / c.heads})
                                          .permute({2, 0, 3, 1, 4})
                                          .unbind(0);
  const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]);
  return with.linear(mixed.transpose(1, 2).reshape({n, t, c.dim}), kOutWeight, kOutBias);
}

at::Tensor transform(const Operations& with, const at::Tensor& x) {
  const at::Tensor normed = with.layer_norm(x, kNormWeight, kNormBias);
  return with.linear(at::gelu(with.linear(normed, kQkvWeight, kQkvBias)), kOutWeight, kOutBias);
}

at::Tensor classify(const Operations& with, const at::Tensor& x) {
  return with.linear(with.layer_norm(x.select(1, 0), kHeadNormWeight, kHeadNormBias), kHeadWeight,
                     kHeadBias);
}

}  // namespace

ModelSpec make_vit(const VitConfig& config) {
  ModelSpec model{.config = config, .blocks = {"embedding"}, .layers = {make_embedding(config)}};
  for (int i = 0; i < config.blocks; ++i) {
    model.blocks.push_back("block" + std::to_string(i + 1));
    model.layers.push_back(make_attention(config, i));
    model.layers.push_back(make_mlp(config, i));
  }
  model.blocks.emplace_back("head");
  model.layers.push_back(make_head(config));
  return model;
}

std::vector<at::Tensor> initial_parameters(const ModelSpec& model, LayerId layer,
                                           std::uint64_t seed) {
  constexpr std::uint64_t kInitialStream = 0x696e6974;
  at::Generator generator = make_generator(kInitialStream, seed, layer.index(), 0);
  std::vector<at::Tensor> parameters;
  for (const ParameterSpec& spec : model.layers[layer.index()].parameters) {
    at::Tensor value = at::empty(spec.shape, at::kFloat);
    if (spec.bound > 0) {
      value.uniform_(-spec.bound, spec.bound, generator);
    } else if (spec.bound < 0) {
      value.normal_(0, 1, generator);
    } else {
      value.fill_(spec.constant);
    }
    parameters.push_back(value);
  }
  return parameters;
}

at::Tensor forward_layer(const ModelSpec& model, LayerId layer,
                         const std::vector<at::Tensor>& parameters, const at::Tensor& input,
                         const RandomKey& key, bool training, ParametricOperations* operations) {
  const VitConfig& c = model.config;
  const Operations with(parameters, operations);
  switch (model.layers[layer.index()].kind) {
    case LayerKind::kEmbedding:
      return embed(c, parameters, input);
    case LayerKind::kAttention:
      return input + drop(attend(c, with, input), c.dropout, layer, key, training);
    case LayerKind::kMlp:
      return input + drop(transform(with, input), c.dropout, layer, key, training);
    case LayerKind::kHead:
      return classify(with, input);
  }
  ENSURE(false, "unknown layer kind");
}

at::Tensor scaled_loss(const at::Tensor& logits, const at::Tensor& labels, double scale) {
  return at::cross_entropy_loss(logits, labels) * scale;
}

Bytes boundary_bytes_per_sample(const ModelSpec& model, LayerId layer) {
  const VitConfig& c = model.config;
  const std::int64_t values =
      model.layers[layer.index()].kind == LayerKind::kHead ? c.classes : tokens(c) * c.dim;
  return Bytes{values * static_cast<std::int64_t>(sizeof(float))};
}

Bytes input_bytes_per_sample(const ModelSpec& model) {
  const VitConfig& c = model.config;
  return Bytes{static_cast<std::int64_t>(c.channels) * c.image * c.image *
               static_cast<std::int64_t>(sizeof(float))};
}

}  // namespace frazil
