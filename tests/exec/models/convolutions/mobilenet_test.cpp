// A mobilenet is what its names say, and trains as the same network written down at once.
#include "exec/models/convolutions/mobilenet.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/exec/models/convolutions/plain_mobilenet.h"
#include "tests/exec/models/model_plans.h"

namespace frazil {
namespace {

constexpr std::uint64_t kMobilenetSeed = 11;
// A power of two, so that the product with a gradient is exact.
constexpr double kMobilenetRate = 0.125;

using Shape = std::vector<std::int64_t>;

Samples some_images(const MobilenetShape& shape, int count) {
  return {{at::ones({count, shape.channels, shape.image, shape.image})},
          at::zeros({count}, at::kLong)};
}

// Returns the shapes of what the last layers of all blocks put out for three samples.
std::vector<Shape> block_shapes(const ModelSpec& model, const MobilenetShape& shape) {
  const std::vector<Tensors> outputs = example_outputs(model, some_images(shape, 3));
  std::vector<Shape> shapes(model.blocks.size());
  for (std::size_t l = 0; l < outputs.size(); ++l) {
    EXPECT_EQ(outputs[l].size(), 1U) << "layer " << l;
    shapes[model.layers[l].block.index()] = outputs[l].front().sizes().vec();
  }
  return shapes;
}

TEST(Mobilenet, PutsOutItsWidthsAndSidesWhateverIsInItsCells) {
  MobilenetConfig config{.shape = {.image = 9,
                                   .channels = 3,
                                   .stem = 4,
                                   .widths = {6, 4, 4},
                                   .cells = {1, 2, 1},
                                   .strides = {2, 2, 1},
                                   .head = 8,
                                   .classes = 7}};
  const std::vector<Shape> expected{{3, 6, 5, 5}, {3, 4, 3, 3}, {3, 4, 3, 3}, {3, 7}};
  for (const bool batch_norm : {true, false}) {
    config.shape.batch_norm = batch_norm;
    config.shape.cells = {1, 2, 1};
    config.operations = {};
    EXPECT_EQ(block_shapes(make_mobilenet(config), config.shape), expected);
    config.operations = {{CellOperation::kKernel7Expand3},
                         {CellOperation::kKernel5Expand6, CellOperation::kZero},
                         {CellOperation::kZero}};
    EXPECT_EQ(block_shapes(make_mobilenet(config), config.shape), expected);
    config.operations = {};
    config.shape.cells = {2, 1, 3};
    EXPECT_EQ(block_shapes(make_mobilenet(config), config.shape), expected);
    EXPECT_EQ(block_shapes(make_supernet({.shape = config.shape}), config.shape), expected);
  }
}

// The boundaries of the networks of Pipe-BD's search.
TEST(Mobilenet, HasThePublishedBoundariesOnImagesOfAnySide) {
  MobilenetShape shape{.image = 224,
                       .channels = 3,
                       .stem_stride = 2,
                       .widths = {24, 32, 64, 96, 160, 320},
                       .cells = {2, 4, 4, 4, 4, 1},
                       .strides = {2, 2, 2, 1, 2, 1},
                       .head = 1280,
                       .classes = 1000};
  const auto sides = [&] {
    std::vector<std::int64_t> found;
    for (const std::vector<CellShape>& stage : list_cells(shape)) {
      found.push_back(stage.back().side);
    }
    return found;
  };
  EXPECT_EQ(sides(), (std::vector<std::int64_t>{56, 28, 14, 14, 7, 7}));
  shape.image = 8;
  shape.stem_stride = 1;
  shape.strides = {1, 1, 2, 1, 2, 1};
  EXPECT_EQ(sides(), (std::vector<std::int64_t>{8, 8, 4, 4, 2, 2}));
}

TEST(Mobilenet, TellsTheBytesOfItsOutputs) {
  const MobilenetConfig config = small_mobilenet();
  for (const ModelSpec& model : {make_mobilenet(config), make_supernet(small_supernet())}) {
    const std::vector<Tensors> outputs = example_outputs(model, some_images(config.shape, 3));
    for (std::size_t l = 0; l < outputs.size(); ++l) {
      const auto bytes = static_cast<std::int64_t>(outputs[l].front().nbytes()) / 3;
      EXPECT_EQ(model.layers[l].output_bytes_per_sample, std::vector<Bytes>{Bytes{bytes}});
    }
  }
}

TEST(Mobilenet, NamesWhatAModuleOfPyTorchWouldHold) {
  const ModelSpec model = make_mobilenet(small_mobilenet());
  EXPECT_EQ(model.blocks, (std::vector<std::string>{"stage1", "stage2", "classifier"}));
  std::map<std::string, Shape> named;
  std::vector<std::string> layers;
  for (const LayerSpec& layer : model.layers) {
    layers.push_back(layer.name);
    for (const ParameterSpec& parameter : layer.parameters) {
      EXPECT_TRUE(named.emplace(parameter.name, parameter.shape).second) << parameter.name;
    }
  }
  EXPECT_EQ(layers, (std::vector<std::string>{"stem", "stage1.0", "stage1.1", "stage2.0",
                                              "stage2.1", "head", "classifier"}));
  EXPECT_EQ(named.at("stem.weight"), (Shape{4, 2, 3, 3}));
  EXPECT_EQ(named.at("stage1.0.expand.weight"), (Shape{12, 4, 1, 1}));
  EXPECT_EQ(named.at("stage1.0.depthwise.weight"), (Shape{12, 1, 5, 5}));
  EXPECT_EQ(named.at("stage1.0.project.norm.bias"), Shape{4});
  EXPECT_EQ(named.at("stage2.0.depthwise.weight"), (Shape{24, 1, 3, 3}));
  EXPECT_EQ(named.at("stage2.1.project.weight"), (Shape{6, 18, 1, 1}));
  EXPECT_EQ(named.at("head.weight"), (Shape{8, 6, 1, 1}));
  EXPECT_EQ(named.at("classifier.bias"), Shape{5});
  EXPECT_FALSE(named.contains("head.bias")) << "the norm has one";
  const LayerSpec& zero = model.layers[2];
  EXPECT_TRUE(zero.parameters.empty());
  EXPECT_TRUE(zero.mixes_samples == SampleMixing::kNever && !zero.varies_in_training)
      << "it puts out what it reads";
  EXPECT_EQ(model.layers[3].statistics.front().name, "stage2.0.expand.norm.running_mean");
}

void choose_all(const MobilenetConfig& config, PlainMobilenet& plain) {
  const std::vector<std::vector<CellShape>> stages = list_cells(config.shape);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::size_t k = 0; k < stages[s].size(); ++k) {
      plain.choose(stages[s][k].name, static_cast<std::size_t>(config.operations[s][k]));
    }
  }
}

// The running statistics are folded by other operations than PyTorch's, so they are near.
void expect_same_state(const ModelSpec& model, const std::vector<LayerState>& states,
                       PlainMobilenet& plain, std::int64_t micro_batches) {
  for (std::size_t l = 0; l < states.size(); ++l) {
    const LayerSpec& layer = model.layers[l];
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      const std::string& name = layer.parameters[p].name;
      EXPECT_TRUE(at::equal(states[l].parameters[p], plain.weights.at(name))) << name;
    }
    for (std::size_t s = 0; s < layer.statistics.size(); ++s) {
      const at::Tensor& found = states[l].statistics[s];
      const std::string& name = layer.statistics[s].name;
      if (found.scalar_type() == at::kLong) {
        EXPECT_EQ(found.item<std::int64_t>(), micro_batches) << name;
      } else {
        EXPECT_LT((found - plain.statistics.at(name)).abs().max().item<double>(), 1e-6) << name;
      }
    }
  }
}

void expect_plain_training(const MobilenetConfig& config, const PlanForm& form) {
  SCOPED_TRACE(make_mobilenet(config).name + ", " + name_of(form));
  const TestModel model = mobilenet_model(config);
  OptimizerConfig optimizer = momentum_sgd();
  optimizer.momentum = 0;
  frazil::Run run(model.spec, optimizer, kMobilenetSeed, form.all_devices());
  run.transition_to(make_plan(model, form));
  PlainMobilenet plain(config.shape, /*is_supernet=*/false, model.spec, kMobilenetSeed);
  choose_all(config, plain);
  for (Step step = 0; step < 3; ++step) {
    const std::vector<Samples> micro_batches =
        model.samples({.seed = static_cast<std::uint64_t>(step) + 1,
                       .last_short_by = static_cast<int>(step % 2)});
    EXPECT_EQ(run.step(step, kMobilenetRate, micro_batches).loss,
              plain.step(micro_batches, kMobilenetRate));
    expect_same_state(model.spec, run.gather_states(), plain, 4 * (step + 1));
  }
  const Samples samples = model.samples({.seed = 9}).front();
  const at::Tensor logits = plain.classify(samples.inputs.at(0), /*training=*/false);
  EXPECT_NEAR(run.evaluate(SampleSource(samples), 3).loss,
              at::cross_entropy_loss(logits, samples.labels).item<double>(), 1e-5);
}

TEST(Mobilenet, TrainsToTheBitsOfAPlainProgramAndItsRunningStatistics) {
  for (const bool batch_norm : {false, true}) {
    MobilenetConfig config = small_mobilenet();
    config.shape.batch_norm = batch_norm;
    expect_plain_training(config, {});
    expect_plain_training(config, {.devices = 3, .cuts = {1, 3}});
    expect_plain_training(config, {.schedule = ScheduleKind::kZbH1, .devices = 2, .replicas = 2});
  }
}

}  // namespace
}  // namespace frazil
