#include "exec/config/configured_data.h"

#include "exec/data/random_hierarchy.h"
#include "profiles/error.h"

namespace frazil {
namespace {

Dataset load_whole(const RunConfig& config) {
  const VitConfig& model = config.model;
  switch (config.data.kind) {
    case DataConfig::Kind::kDigits: {
      Dataset data = read_digits(config.data.path);
      if (data.height != model.image || data.channels != model.channels ||
          data.classes != model.classes) {
        throw InputError("run configuration", 0,
                         "a model for " + std::to_string(model.channels) + " x " +
                             std::to_string(model.image) + " x " + std::to_string(model.image) +
                             " images of " + std::to_string(model.classes) + " classes",
                         "one for the digits: image 8, channels 1, classes 10");
      }
      return data;
    }
    case DataConfig::Kind::kSynthetic:
      return make_synthetic(config.data.train_samples, config.data.test_samples, model.channels,
                            model.image, model.classes, config.data.seed);
    case DataConfig::Kind::kRandomHierarchy:
      return make_random_hierarchy(config.data.hierarchy, config.data.train_samples,
                                   config.data.test_samples, model, config.data.seed);
  }
  ENSURE(false, "unknown kind of data");
}

}  // namespace

Dataset load_data(const RunConfig& config) {
  return split_validation(load_whole(config), config.data.validation_percent, config.seed);
}

}  // namespace frazil
