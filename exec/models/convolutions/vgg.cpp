#include "exec/models/convolutions/vgg.h"

#include <ATen/ATen.h>

#include <utility>

#include "exec/models/convolutions/normed_convolution.h"
#include "exec/models/model_parts.h"

namespace frazil {
namespace {

struct VggLayer {
  std::string name;
  BlockId block;
  std::vector<Convolution> convolutions;  // each with a ReLU
  bool pools = false;
  std::int64_t side = 0;  // of the output
};

Tensors forward_vgg(const std::vector<PlacedConvolution>& convolutions, bool pools,
                    const LayerCall& call) {
  at::Tensor x = call.inputs.at(0);
  for (const PlacedConvolution& placed : convolutions) {
    x = at::relu(apply_convolution(call, placed, x));
  }
  if (pools) x = at::max_pool2d(x, {2, 2}, {2, 2}, {0, 0}, {1, 1}, /*ceil_mode=*/true);
  return {x};
}

LayerSpec make_vgg_layer(const VggLayer& layer) {
  const bool has_norms = layer.convolutions.front().has_norm;
  const std::int64_t values = layer.convolutions.back().out * layer.side * layer.side;
  LayerSpec spec{.name = layer.name,
                 .block = layer.block,
                 .parameters = {},
                 .forward = {},
                 .output_bytes_per_sample = {float_bytes(values)},
                 .narrow_outputs = {0},
                 .varies_in_training = has_norms,
                 .statistics = {},
                 .mixes_samples = has_norms ? SampleMixing::kInTraining : SampleMixing::kNever};
  std::vector<PlacedConvolution> placed;
  for (const Convolution& one : layer.convolutions) placed.push_back(add_convolution(one, spec));
  spec.forward = [placed = std::move(placed), pools = layer.pools](const LayerCall& call) {
    return forward_vgg(placed, pools, call);
  };
  return spec;
}

// Returns what takes `in` channels to `out`: a convolution, or one in each channel and one over all
// of them.
std::vector<Convolution> list_convolutions(const std::string& name, std::int64_t in,
                                           const VggConfig& c, std::int64_t out, bool separable) {
  if (!separable) return {{.name = name, .in = in, .out = out, .has_norm = c.batch_norm}};
  return {
      {.name = name + ".depthwise", .in = in, .out = in, .groups = in, .has_norm = c.batch_norm},
      {.name = name + ".pointwise", .in = in, .out = out, .kernel = 1, .has_norm = c.batch_norm}};
}

std::string name_vgg(const VggConfig& c) {
  std::string name = c.separable ? "separable-vgg-i" : "vgg-i";
  name += std::to_string(c.image);
  for (const int width : c.widths) name += "-w" + std::to_string(width);
  name += "-k" + std::to_string(c.convolutions) + (c.batch_norm ? "-bn" : "");
  return name + "-c" + std::to_string(c.classes);
}

}  // namespace

ModelSpec make_vgg(const VggConfig& c) {
  ModelSpec model;
  model.name = name_vgg(c);
  model.input_bytes_per_sample = float_bytes(std::int64_t{c.channels} * c.image * c.image);
  std::int64_t in = c.channels;
  std::int64_t side = c.image;
  for (std::size_t s = 0; s < c.widths.size(); ++s) {
    model.blocks.push_back("stage" + std::to_string(s + 1));
    for (int k = 0; k < c.convolutions; ++k) {
      const std::string name = model.blocks.back() + "." + std::to_string(k);
      const bool is_first = model.layers.empty();
      const bool pools = k + 1 == c.convolutions && s + 1 < c.widths.size();
      if (pools) side = (side + 1) / 2;
      model.layers.push_back(make_vgg_layer(
          {.name = name,
           .block = BlockId{s},
           .convolutions = list_convolutions(name, in, c, c.widths[s], c.separable && !is_first),
           .pools = pools,
           .side = side}));
      in = c.widths[s];
    }
  }
  model.blocks.emplace_back("classifier");
  model.layers.push_back(
      make_pooled_classifier(BlockId{c.widths.size()}, c.widths.back(), c.classes));
  model.edges = make_chain(model.layers);
  return model;
}

}  // namespace frazil
