#pragma once
// The small models of the executor's tests, each with what a test over all models needs: samples
// and a mask.

#include <functional>
#include <string>
#include <vector>

#include "exec/models/model_precision.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct TestModel {
  ModelSpec spec;
  std::function<std::vector<Samples>(const StepShape&)> samples;
  std::string mask;  // as it trains: all but a teacher's blocks

  // The same model as it computes in this precision.
  TestModel in(Precision precision) const {
    return {with_precision(spec, precision), samples, mask};
  }
  int layers() const { return static_cast<int>(spec.layers.size()); }
};

TestModel encoder_model();
TestModel decoder_model();
TestModel uneven_mlp_model();
TestModel small_cnn_model();
TestModel distillation_model();

}  // namespace frazil
