#include "tests/exec/models/test_models.h"

#include <ATen/ATen.h>

#include "tests/exec/models/distillation.h"

namespace frazil {
namespace {

std::string all_active(const ModelSpec& model) { return std::string(model.blocks.size(), '1'); }

// Every row holds at least two tokens.
at::Tensor draw_mask(const EncoderConfig& c, std::int64_t n, at::Generator& generator) {
  const at::Tensor lengths = draw_integers({n, 1}, c.tokens - 1, generator) + 2;
  return at::arange(c.tokens, at::kLong).unsqueeze(0).lt(lengths).to(at::kLong).contiguous();
}

using DrawSamples = std::function<std::vector<Samples>(const StepShape&)>;

DrawSamples draw_images(int channels, int image, int classes) {
  return [channels, image, classes](const StepShape& shape) {
    return draw_micro_batches(shape, [&](at::Generator& generator, std::int64_t n) {
      return Samples{{draw_normal({n, channels, image, image}, generator)},
                     draw_integers({n}, classes, generator)};
    });
  };
}

void lift_norms(ModelSpec& model) {
  for (LayerSpec& layer : model.layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      if (parameter.name.ends_with(".norm.bias")) parameter.constant = 0.1;
    }
  }
}

}  // namespace

DecoderConfig small_decoder() {
  return {.vocabulary = 18,
          .tokens = 5,
          .dim = 16,
          .blocks = 2,
          .heads = 2,
          .expansion = 2,
          .dropout = 0.1};
}

EncoderConfig small_encoder() {
  return {.vocabulary = 20,
          .segments = 2,
          .tokens = 5,
          .dim = 16,
          .blocks = 2,
          .heads = 2,
          .expansion = 2,
          .classes = 4,
          .dropout = 0.1};
}

CnnConfig small_cnn() {
  return {.image = 6, .channels = 1, .width = 4, .detour = 6, .units = 1, .classes = 5};
}

MlpConfig uneven_mlp() {
  return {.image = 2, .channels = 3, .widths = {64, 6, 40, 4, 32, 16}, .classes = 10};
}

VggConfig small_vgg() {
  return {.image = 5,
          .channels = 2,
          .widths = {4, 6},
          .convolutions = 2,
          .separable = true,
          .batch_norm = true,
          .classes = 5};
}

MobilenetConfig small_mobilenet() {
  using Operation = CellOperation;
  return {.shape = {.image = 5,
                    .channels = 2,
                    .stem = 4,
                    .widths = {4, 6},
                    .cells = {2, 2},
                    .strides = {1, 2},
                    .head = 8,
                    .classes = 5},
          .operations = {{Operation::kKernel5Expand3, Operation::kZero},
                         {Operation::kKernel3Expand6, Operation::kKernel7Expand3}}};
}

SupernetConfig small_supernet() {
  return {.shape = small_mobilenet().shape, .architecture_every = 1, .architecture_from = 1};
}

TestModel encoder_model(const EncoderConfig& c) {
  TestModel model{.spec = make_encoder(c), .samples = {}, .mask = {}};
  model.samples = [c](const StepShape& shape) {
    return draw_micro_batches(shape, [&c](at::Generator& generator, std::int64_t n) {
      Samples samples;
      samples.inputs = {draw_integers({n, c.tokens}, c.vocabulary, generator),
                        draw_integers({n, c.tokens}, c.segments, generator),
                        draw_mask(c, n, generator)};
      samples.labels = draw_integers({n}, c.classes, generator);
      return samples;
    });
  };
  model.mask = all_active(model.spec);
  return model;
}

TestModel decoder_model() {
  const DecoderConfig c = small_decoder();
  TestModel model{.spec = make_decoder(c), .samples = {}, .mask = {}};
  model.samples = [c](const StepShape& shape) {
    return draw_micro_batches(shape, [&c](at::Generator& generator, std::int64_t n) {
      const at::Tensor text = draw_integers({n, c.tokens + 1}, c.vocabulary, generator);
      return Samples{{text.narrow(1, 0, c.tokens).contiguous()},
                     text.narrow(1, 1, c.tokens).contiguous()};
    });
  };
  model.mask = all_active(model.spec);
  return model;
}

TestModel uneven_mlp_model() {
  const MlpConfig config = uneven_mlp();
  TestModel model{.spec = make_mlp(config), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& shape) {
    return draw_micro_batches(shape, [&config](at::Generator& generator, std::int64_t n) {
      return Samples{{draw_normal({n, config.channels * config.image * config.image}, generator)},
                     draw_integers({n}, config.classes, generator)};
    });
  };
  for (LayerSpec& layer : model.spec.layers) {
    if (layer.block >= BlockId{3}) layer.block = BlockId{layer.block.value - 1};
  }
  model.spec.blocks.erase(model.spec.blocks.begin() + 3);
  model.mask = all_active(model.spec);
  return model;
}

TestModel small_cnn_model() {
  const CnnConfig config = small_cnn();
  TestModel model{.spec = make_cnn(config), .samples = {}, .mask = {}};
  model.samples = draw_images(config.channels, config.image, config.classes);
  model.mask = all_active(model.spec);
  return model;
}

TestModel small_vgg_model(const VggConfig& config) {
  TestModel model{.spec = make_vgg(config), .samples = {}, .mask = {}};
  lift_norms(model.spec);
  model.samples = draw_images(config.channels, config.image, config.classes);
  model.mask = all_active(model.spec);
  return model;
}

TestModel distilled_vgg_model(bool student_has_norms) {
  VggConfig student = small_vgg();
  VggConfig teacher = student;
  teacher.separable = false;
  student.batch_norm = student_has_norms;
  Distillation networks{.teacher = make_vgg(teacher), .student = make_vgg(student), .blocks = {}};
  networks.blocks = {{"stage1", 2, 2}, {"stage2", 4, 4}, {"head", 5, 5, BlockLoss::kCrossEntropy}};
  TestModel model = small_vgg_model(student);
  model.spec = make_distillation(networks);
  model.mask = all_active(model.spec);
  return model;
}

TestModel mobilenet_model(const MobilenetConfig& config) {
  TestModel model{.spec = make_mobilenet(config), .samples = {}, .mask = {}};
  lift_norms(model.spec);
  model.samples = draw_images(config.shape.channels, config.shape.image, config.shape.classes);
  model.mask = all_active(model.spec);
  return model;
}

TestModel supernet_model(const SupernetConfig& config) {
  TestModel model{.spec = make_supernet(config), .samples = {}, .mask = {}};
  lift_norms(model.spec);
  for (LayerSpec& layer : model.spec.layers) {
    for (ParameterSpec& parameter : layer.parameters) {
      if (parameter.name.ends_with(".architecture")) parameter.bound = 1;
    }
  }
  model.samples = draw_images(config.shape.channels, config.shape.image, config.shape.classes);
  model.mask = all_active(model.spec);
  return model;
}

TestModel distilled_supernet_model(const SupernetConfig& config) {
  TestModel model = supernet_model(config);
  Distillation networks{
      .teacher = mobilenet_model().spec, .student = std::move(model.spec), .blocks = {}};
  const std::vector<int>& cells = config.shape.cells;
  const auto first = static_cast<std::size_t>(1 + cells[0]);  // behind stem and cells
  const std::size_t second = first + static_cast<std::size_t>(cells[1]);
  networks.blocks = {{"stage1", 3, first},
                     {"stage2", 5, second},
                     {"head", 7, second + 2, BlockLoss::kCrossEntropy}};
  model.spec = make_distillation(networks);
  model.mask = all_active(model.spec);
  return model;
}

TestModel distillation_model() {
  const DistillationConfig config;
  TestModel model{
      .spec = make_distillation(make_small_networks(config)), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& s) { return make_distillation_samples(config, s); };
  model.mask = all_active(model.spec);
  return model;
}

}  // namespace frazil
