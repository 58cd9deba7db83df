#include "exec/models/hugging_face_vit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

using Weights = std::map<std::string, at::Tensor>;

at::Tensor norm(const Weights& w, const std::string& name, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, w.at(name + ".weight"), w.at(name + ".bias"), 1e-12);
}

at::Tensor linear(const Weights& w, const std::string& name, const at::Tensor& x) {
  return at::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
}

at::Tensor heads_of(const at::Tensor& x, int heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// A transformer block as Hugging Face's ViTLayer computes it, with attention spelled out.
at::Tensor run_block(const Weights& w, const std::string& p, const at::Tensor& x, int heads) {
  const at::Tensor normed = norm(w, p + ".layernorm_before", x);
  const auto part = [&](const std::string& name) {
    return heads_of(linear(w, p + ".attention.attention." + name, normed), heads);
  };
  const double scale = 1 / std::sqrt(static_cast<double>(x.size(2) / heads));
  const at::Tensor scores = at::matmul(part("query"), part("key").transpose(-1, -2)) * scale;
  const at::Tensor mixed = at::matmul(at::softmax(scores, -1), part("value"));
  const at::Tensor joined = mixed.transpose(1, 2).reshape_as(x);
  const at::Tensor middle = x + linear(w, p + ".attention.output.dense", joined);
  const at::Tensor wide =
      at::gelu(linear(w, p + ".intermediate.dense", norm(w, p + ".layernorm_after", middle)));
  return middle + linear(w, p + ".output.dense", wide);
}

// The whole model as ViTForImageClassification computes it, patches by a convolution.
at::Tensor run_model(const VitConfig& config, const Weights& w, const at::Tensor& images) {
  const std::string patches = "vit.embeddings.patch_embeddings.projection";
  at::Tensor x = at::conv2d(images, w.at(patches + ".weight"), w.at(patches + ".bias"),
                            {config.patch, config.patch})
                     .flatten(2)
                     .transpose(1, 2);
  const at::Tensor token = w.at("vit.embeddings.cls_token").expand({images.size(0), 1, config.dim});
  x = at::cat({token, x}, 1) + w.at("vit.embeddings.position_embeddings");
  for (int block = 0; block < config.blocks; ++block) {
    x = run_block(w, "vit.encoder.layer." + std::to_string(block), x, config.heads);
  }
  return linear(w, "classifier", norm(w, "vit.layernorm", x).select(1, 0));
}

TEST(HuggingFaceVit, ComputesTheSameLogitsFromTheseWeights) {
  VitConfig config = small_config();
  config.channels = 3;
  config.patch = 2;
  config.heads = 2;
  const ModelSpec model = make_vit(config);
  std::vector<Tensors> own;
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    own.push_back(initial_parameters(model, LayerId{l}, 5));
    // Norms and biases that are not those of the start tell mistaken names apart.
    for (at::Tensor& tensor : own.back()) tensor = tensor + 0.1 * at::randn(tensor.sizes());
  }
  std::vector<const Tensors*> pointers;
  for (const Tensors& tensors : own) pointers.push_back(&tensors);
  Weights weights;
  for (const NamedTensor& weight : to_hugging_face(config, pointers)) {
    EXPECT_TRUE(weights.emplace(weight.name, weight.tensor).second) << weight.name;
  }
  EXPECT_EQ(weights.size(), 8U + 16U * static_cast<unsigned>(config.blocks));
  const at::Tensor images = at::randn({4, config.channels, config.image, config.image});
  const at::Tensor logits = forward_model(model, pointers, {images}).back().at(0);
  EXPECT_TRUE(at::allclose(logits, run_model(config, weights, images), 1e-4, 1e-5));
}

}  // namespace
}  // namespace frazil
