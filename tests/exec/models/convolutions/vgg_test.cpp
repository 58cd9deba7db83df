// A VGG, plain and separable, is what its names say, and trains as the same network written down at
// once.
#include "exec/models/convolutions/vgg.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>

#include "profiles/error.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

constexpr std::uint64_t kVggSeed = 11;
// A power of two, so that the product with a gradient is exact.
constexpr double kVggRate = 0.125;
constexpr Step kVggSteps = 4;

using Shape = std::vector<std::int64_t>;

// Returns the shapes of what the last layers of all blocks put out for three samples.
std::vector<Shape> block_shapes(const ModelSpec& model, const Samples& samples) {
  const std::vector<Tensors> outputs = example_outputs(model, samples);
  std::vector<Shape> shapes(model.blocks.size());
  for (std::size_t l = 0; l < outputs.size(); ++l) {
    EXPECT_EQ(outputs[l].size(), 1U) << "layer " << l;
    shapes[model.layers[l].block.index()] = outputs[l].front().sizes().vec();
  }
  return shapes;
}

Samples draw_images(const VggConfig& c) {
  return {{at::ones({3, c.channels, c.image, c.image})}, at::zeros({3}, at::kLong)};
}

TEST(Vgg, PutsOutItsWidthsAndHalvedSidesWhateverIsInsideItsStages) {
  VggConfig config{.image = 10, .channels = 2, .widths = {4, 6, 3, 5}, .classes = 7};
  const std::vector<Shape> expected{{3, 4, 5, 5}, {3, 6, 3, 3}, {3, 3, 2, 2}, {3, 5, 2, 2}, {3, 7}};
  for (const bool separable : {false, true}) {
    for (const bool batch_norm : {false, true}) {
      for (const int convolutions : {1, 3}) {
        config.separable = separable;
        config.batch_norm = batch_norm;
        config.convolutions = convolutions;
        const ModelSpec model = make_vgg(config);
        EXPECT_EQ(model.layers.size(), 4U * static_cast<std::size_t>(convolutions) + 1);
        EXPECT_EQ(block_shapes(model, draw_images(config)), expected);
      }
    }
  }
}

TEST(Vgg, TellsTheBytesOfItsOutputs) {
  for (const VggConfig& config : {VggConfig{}, small_vgg()}) {
    const ModelSpec model = make_vgg(config);
    const std::vector<Tensors> outputs = example_outputs(model, draw_images(config));
    for (std::size_t l = 0; l < outputs.size(); ++l) {
      const auto bytes = static_cast<std::int64_t>(outputs[l].front().nbytes()) / 3;
      EXPECT_EQ(model.layers[l].output_bytes_per_sample, std::vector<Bytes>{Bytes{bytes}});
    }
  }
}

// The first layer reads the image's channels together, and so is not separated.
TEST(Vgg, NamesWhatAModuleOfPyTorchWouldHold) {
  const ModelSpec model = make_vgg(small_vgg());
  EXPECT_EQ(model.blocks, (std::vector<std::string>{"stage1", "stage2", "classifier"}));
  std::map<std::string, Shape> named;
  for (const LayerSpec& layer : model.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      EXPECT_TRUE(named.emplace(parameter.name, parameter.shape).second) << parameter.name;
    }
  }
  EXPECT_EQ(named.at("stage1.0.weight"), (Shape{4, 2, 3, 3}));
  EXPECT_EQ(named.at("stage1.0.norm.bias"), Shape{4});
  EXPECT_EQ(named.at("stage2.0.depthwise.weight"), (Shape{4, 1, 3, 3}));
  EXPECT_EQ(named.at("stage2.0.depthwise.norm.weight"), Shape{4});
  EXPECT_EQ(named.at("stage2.0.pointwise.weight"), (Shape{6, 4, 1, 1}));
  EXPECT_EQ(named.at("classifier.weight"), (Shape{5, 6}));
  EXPECT_FALSE(named.contains("stage1.0.bias")) << "the norm has one";
  std::vector<std::string> statistics;
  for (const StatisticSpec& one : model.layers[1].statistics) statistics.push_back(one.name);
  EXPECT_EQ(
      statistics,
      (std::vector<std::string>{
          "stage1.1.depthwise.norm.running_mean", "stage1.1.depthwise.norm.running_var",
          "stage1.1.depthwise.norm.num_batches_tracked", "stage1.1.pointwise.norm.running_mean",
          "stage1.1.pointwise.norm.running_var", "stage1.1.pointwise.norm.num_batches_tracked"}));
}

TEST(Vgg, WithoutNormsNeitherMixesSamplesNorVaries) {
  for (const bool batch_norm : {false, true}) {
    const ModelSpec model = make_vgg({.separable = true, .batch_norm = batch_norm});
    for (const LayerSpec& layer : model.layers) {
      const bool is_normed = batch_norm && layer.name != "classifier";
      EXPECT_EQ(mixes_samples(layer, /*training=*/true), is_normed);
      EXPECT_FALSE(mixes_samples(layer, /*training=*/false));
      EXPECT_EQ(layer.varies_in_training, is_normed);
      EXPECT_EQ(layer.statistics.empty(), !is_normed);
    }
  }
}

// The oracle knows weights and running statistics by name, and no layers: it is the network as a
// program of libtorch has it, under one autograd graph, with norms that keep statistics in place.
class PlainVgg {
 public:
  // `model` gives the start values alone.
  PlainVgg(const VggConfig& config, const ModelSpec& model) : config_(config) {
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      const Tensors values = initial_parameters(model, LayerId{l}, kVggSeed);
      for (std::size_t p = 0; p < values.size(); ++p) {
        weights_[model.layers[l].parameters[p].name] = values[p].requires_grad_();
      }
    }
  }

  // Adds the gradients as ((0 + 1) + (2 + 3)) and returns the step's loss.
  double step(const std::vector<Samples>& micro_batches) {
    std::int64_t samples = 0;
    for (const Samples& some : micro_batches) samples += some.count();
    Tensors weights;
    for (const auto& [name, weight] : weights_) weights.push_back(weight);
    std::vector<Tensors> gradients;
    double sum = 0;
    for (const Samples& some : micro_batches) {
      const double share = static_cast<double>(some.count()) / static_cast<double>(samples);
      const at::Tensor logits = classify(some.inputs.at(0), /*training=*/true);
      const at::Tensor loss = at::cross_entropy_loss(logits, some.labels) * share;
      sum += loss.item<double>();
      gradients.push_back(torch::autograd::grad({loss}, weights));
    }
    const c10::NoGradGuard no_grad;
    for (std::size_t w = 0; w < weights.size(); ++w) {
      const at::Tensor gradient =
          (gradients[0][w] + gradients[1][w]) + (gradients[2][w] + gradients[3][w]);
      weights[w].sub_(gradient * kVggRate);
    }
    return sum;
  }

  at::Tensor classify(at::Tensor x, bool training) {
    for (std::size_t s = 0; s < config_.widths.size(); ++s) {
      for (int k = 0; k < config_.convolutions; ++k) {
        const std::string name = "stage" + std::to_string(s + 1) + "." + std::to_string(k);
        if (config_.separable && s + static_cast<std::size_t>(k) > 0) {
          x = convolve(name + ".depthwise", x, x.size(1), training);
          x = convolve(name + ".pointwise", x, 1, training);
        } else {
          x = convolve(name, x, 1, training);
        }
      }
      if (s + 1 < config_.widths.size()) x = at::max_pool2d(x, 2, 2, 0, 1, /*ceil_mode=*/true);
    }
    x = at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
    return at::linear(x, weights_.at("classifier.weight"), weights_.at("classifier.bias"));
  }

  const at::Tensor& weight(const std::string& name) const { return weights_.at(name); }
  const at::Tensor& statistic(const std::string& name) const { return statistics_.at(name); }

 private:
  at::Tensor convolve(const std::string& name, const at::Tensor& x, std::int64_t groups,
                      bool training) {
    const at::Tensor& kernels = weights_.at(name + ".weight");
    const std::int64_t padding = kernels.size(2) == 3 ? 1 : 0;
    if (!config_.batch_norm) {
      return at::relu(at::conv2d(x, kernels, weights_.at(name + ".bias"), 1, padding, 1, groups));
    }
    const std::string norm = name + ".norm";
    at::Tensor& mean = statistics_[norm + ".running_mean"];
    at::Tensor& variance = statistics_[norm + ".running_var"];
    if (!mean.defined()) mean = at::zeros({kernels.size(0)});
    if (!variance.defined()) variance = at::ones({kernels.size(0)});
    return at::relu(at::batch_norm(at::conv2d(x, kernels, {}, 1, padding, 1, groups),
                                   weights_.at(norm + ".weight"), weights_.at(norm + ".bias"), mean,
                                   variance, training, 0.1, 1e-5, false));
  }

  VggConfig config_;
  std::map<std::string, at::Tensor> weights_;
  std::map<std::string, at::Tensor> statistics_;
};

// The running statistics are folded by other operations than PyTorch's, so they are near.
void expect_state(const ModelSpec& model, const std::vector<LayerState>& states,
                  const PlainVgg& plain, std::int64_t micro_batches) {
  for (std::size_t l = 0; l < states.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      const std::string& name = layer.parameters[p].name;
      EXPECT_TRUE(at::equal(states[l].parameters[p], plain.weight(name))) << name;
    }
    for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
      const at::Tensor& found = states[l].statistics[s];
      const std::string& name = layer.statistics[s].name;
      if (found.scalar_type() == at::kLong) {
        EXPECT_EQ(found.item<std::int64_t>(), micro_batches) << name;
      } else {
        EXPECT_LT((found - plain.statistic(name)).abs().max().item<double>(), 1e-6) << name;
      }
    }
  }
}

void expect_plain_training(const VggConfig& config, const PlanForm& form) {
  SCOPED_TRACE(make_vgg(config).name + ", " + name_of(form));
  const TestModel model = small_vgg_model(config);
  OptimizerConfig optimizer = momentum_sgd();
  optimizer.momentum = 0;
  frazil::Run run(model.spec, optimizer, kVggSeed, form.all_devices());
  run.transition_to(make_plan(model, form));
  PlainVgg plain(config, model.spec);
  for (Step step = 0; step < kVggSteps; ++step) {
    const std::vector<Samples> micro_batches =
        model.samples({.seed = static_cast<std::uint64_t>(step) + 1,
                       .last_short_by = static_cast<int>(step % 2)});
    EXPECT_EQ(run.step(step, kVggRate, micro_batches).loss, plain.step(micro_batches));
    expect_state(model.spec, run.gather_states(), plain, 4 * (step + 1));
  }
  const Samples samples = model.samples({.seed = 9}).front();
  const at::Tensor logits = plain.classify(samples.inputs.at(0), /*training=*/false);
  EXPECT_NEAR(run.evaluate(SampleSource(samples), 3).loss,
              at::cross_entropy_loss(logits, samples.labels).item<double>(), 1e-5);
}

TEST(Vgg, TrainsToTheBitsOfAPlainProgramAndItsRunningStatistics) {
  for (const bool separable : {false, true}) {
    for (const bool batch_norm : {false, true}) {
      VggConfig config = small_vgg();
      config.separable = separable;
      config.batch_norm = batch_norm;
      expect_plain_training(config, {});
      expect_plain_training(config, {.devices = 3, .cuts = {1, 3}});
      expect_plain_training(config, {.schedule = ScheduleKind::kZbH1, .devices = 2, .replicas = 2});
    }
  }
}

TEST(Vgg, CannotNormaliseASingleValueOfEachChannel) {
  const VggConfig config{.image = 1, .widths = {4, 4}, .convolutions = 1};
  const ModelSpec model = make_vgg(config);
  const Tensors inputs{at::ones({1, 1, 1, 1})};
  const Tensors parameters = initial_parameters(model, LayerId{0}, kVggSeed);
  const Tensors statistics = initial_statistics(model.layers[0]);
  const RandomKey key{};
  LayerCall call{.layer = LayerId{0},
                 .parameters = parameters,
                 .inputs = inputs,
                 .key = key,
                 .statistics = &statistics};
  EXPECT_EQ(model.layers[0].forward(call).front().sizes().vec(), (Shape{1, 4, 1, 1}));
  call.training = true;
  try {
    (void)model.layers[0].forward(call);
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "layer 0 cannot train on a micro-batch of one sample: batch normalisation needs "
                 "more than one value of each channel");
  }
}

}  // namespace
}  // namespace frazil
