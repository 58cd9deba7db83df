#include "exec/train/divergence.h"

#include <cmath>
#include <string>

#include "profiles/error.h"

namespace frazil {
namespace {

[[noreturn]] void refuse(const std::string& found) {
  throw Diverged(found + ": the training has diverged (a smaller learning rate?)");
}

// Before the first update there is nothing that could have diverged.
[[noreturn]] void refuse_step(Step step, const std::string& what) {
  const std::string found = "step " + std::to_string(step) + " has " + what;
  if (step > 0) refuse(found);
  throw Diverged(found +
                 " before any update: a sample, a start weight or what the model makes of "
                 "them is not finite");
}

// A NaN has a sign, which says nothing.
std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : std::to_string(loss); }

std::string name_of(LayerId layer, const ModelSpec& model) {
  return model.layers.at(layer.index()).name;
}

}  // namespace

void refuse_non_finite(Step step, const StepResult& result, const ModelSpec& model) {
  if (!std::isfinite(result.loss)) {
    refuse_step(step, "loss " + loss_text(result.loss));
  }
  if (!result.non_finite_gradient) return;
  refuse_step(step, "a gradient of layer " + name_of(*result.non_finite_gradient, model) +
                        " that is not finite");
}

void refuse_non_finite(Step done, const Run::Evaluation& evaluation, const char* samples) {
  if (std::isfinite(evaluation.loss)) return;
  refuse("after " + std::to_string(done) + " steps the " + samples + " samples have loss " +
         loss_text(evaluation.loss));
}

void refuse_non_finite_weights(Step done, Run& run) {
  const std::optional<LayerId> layer = run.find_non_finite();
  if (!layer) return;
  refuse("after " + std::to_string(done) + " steps layer " + name_of(*layer, run.model()) +
         " has a weight or a moment that is not finite");
}

}  // namespace frazil
