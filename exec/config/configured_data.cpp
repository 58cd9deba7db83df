#include "exec/config/configured_data.h"

#include "exec/data/random_hierarchy.h"
#include "exec/data/tensor_samples.h"
#include "exec/data/token_samples.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// The digits and their classes may be fewer than those that the model can tell apart.
bool fits(const Dataset& data, const SampleForm& form) {
  return form.tells_images_apart() && data.classes <= form.classes &&
         form.inputs == image_form(data.channels, data.height, form.classes).inputs;
}

Dataset make_learnable(const DataConfig& data, const SampleForm& form) {
  if (!form.reads_images()) {
    return make_token_samples(data.train_samples, data.test_samples, form, data.seed);
  }
  const std::vector<std::int64_t>& shape = form.inputs.front().shape;
  return make_synthetic(data.train_samples, data.test_samples, static_cast<int>(shape.front()),
                        static_cast<int>(shape.back()), static_cast<int>(form.classes), data.seed);
}

Dataset load_whole(const DataConfig& data, const SampleForm& form) {
  switch (data.kind) {
    case DataConfig::Kind::kDigits: {
      Dataset digits = read_digits(data.path);
      if (!fits(digits, form)) {
        throw InputError("run configuration", 0, "digits beside a model of other samples",
                         "a model of 8 x 8 images of one channel and ten classes");
      }
      return digits;
    }
    case DataConfig::Kind::kSynthetic:
      return make_learnable(data, form);
    case DataConfig::Kind::kRandomHierarchy:
      return make_random_hierarchy(data.hierarchy, data.train_samples, data.test_samples, form,
                                   data.seed);
    case DataConfig::Kind::kTensors:
      return read_tensor_samples(data.files, form);
  }
  ENSURE(false, "unknown kind of data");
}

}  // namespace

Dataset load_data(const RunConfig& config) {
  return split_validation(load_whole(config.data, sample_form(config.model)),
                          config.data.validation_percent, config.seed);
}

}  // namespace frazil
