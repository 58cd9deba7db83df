#include "exec/models/model_precision.h"

#include <ATen/autocast_mode.h>

#include <memory>
#include <utility>

#include "profiles/error.h"

namespace frazil {

ModelSpec with_precision(ModelSpec model, Precision precision) {
  ENSURE(model.precision == Precision::kFp32, "a model gets its precision once");
  model.precision = precision;
  if (precision == Precision::kFp32) return model;
  if (model.evaluated) {
    EvaluatedNetwork evaluated = *model.evaluated;
    evaluated.network = with_precision(std::move(evaluated.network), precision);
    model.evaluated = std::make_shared<const EvaluatedNetwork>(std::move(evaluated));
  }
  for (LayerSpec& layer : model.layers) {
    layer.forward = [precision, plain = std::move(layer.forward)](const LayerCall& call) {
      const PrecisionScope scope(precision, call.inputs.at(0).device().type());
      return plain(call);
    };
    if (!layer.loss) continue;
    layer.loss = [precision, plain = std::move(layer.loss)](const Tensors& outputs,
                                                            const at::Tensor& labels) {
      const PrecisionScope scope(precision, outputs.at(0).device().type());
      return plain(outputs, labels);
    };
  }
  return model;
}

PrecisionScope::PrecisionScope(Precision precision, c10::DeviceType device)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      type_before_(at::autocast::get_autocast_dtype(device)),
      was_caching_(at::autocast::is_autocast_cache_enabled()) {
  at::autocast::set_autocast_enabled(device_, precision == Precision::kBf16);
  at::autocast::set_autocast_dtype(device_, at::kBFloat16);
  at::autocast::set_autocast_cache_enabled(false);
}

PrecisionScope::~PrecisionScope() {
  at::autocast::set_autocast_cache_enabled(was_caching_);
  at::autocast::set_autocast_dtype(device_, type_before_);
  at::autocast::set_autocast_enabled(device_, was_enabled_);
}

}  // namespace frazil
