#include "tests/exec/models/test_models.h"

#include "tests/exec/models/decoder.h"
#include "tests/exec/models/distillation.h"
#include "tests/exec/models/encoder.h"
#include "tests/exec/models/small_cnn.h"
#include "tests/exec/models/uneven_mlp.h"

namespace frazil {
namespace {

std::string all_active(const ModelSpec& model) { return std::string(model.blocks.size(), '1'); }

}  // namespace

TestModel encoder_model() {
  const EncoderConfig config;
  TestModel model{.spec = make_encoder(config), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& s) { return make_encoder_samples(config, s); };
  model.mask = all_active(model.spec);
  return model;
}

TestModel decoder_model() {
  const DecoderConfig config;
  TestModel model{.spec = make_decoder(config), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& s) { return make_decoder_samples(config, s); };
  model.mask = all_active(model.spec);
  return model;
}

TestModel uneven_mlp_model() {
  const UnevenMlpConfig config;
  TestModel model{.spec = make_uneven_mlp(config), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& s) { return make_uneven_mlp_samples(config, s); };
  model.mask = all_active(model.spec);
  return model;
}

TestModel small_cnn_model() {
  const SmallCnnConfig config;
  TestModel model{.spec = make_small_cnn(config), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& s) { return make_small_cnn_samples(config, s); };
  model.mask = all_active(model.spec);
  return model;
}

TestModel distillation_model() {
  const DistillationConfig config;
  TestModel model{.spec = make_distillation(config), .samples = {}, .mask = {}};
  model.samples = [config](const StepShape& s) { return make_distillation_samples(config, s); };
  model.mask = teacher_mask(config);
  return model;
}

}  // namespace frazil
