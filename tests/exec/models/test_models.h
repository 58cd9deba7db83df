#pragma once
// The small models of the executor's tests, each with what a test over all models needs: samples
// and a mask.

#include <functional>
#include <string>
#include <vector>

#include "exec/models/cnn.h"
#include "exec/models/convolutions/mobilenet.h"
#include "exec/models/convolutions/supernet.h"
#include "exec/models/convolutions/vgg.h"
#include "exec/models/decoder.h"
#include "exec/models/encoder.h"
#include "exec/models/mlp.h"
#include "exec/models/model_precision.h"
#include "tests/exec/models/step_samples.h"

namespace frazil {

struct TestModel {
  ModelSpec spec;
  std::function<std::vector<Samples>(const StepShape&)> samples;
  std::string mask;  // as it trains

  // The same model as it computes in this precision.
  TestModel in(Precision precision) const {
    return {with_precision(spec, precision), samples, mask};
  }
  int layers() const { return static_cast<int>(spec.layers.size()); }
};

// These are the kinds of exec/models, as small as they can be without parts that coincide.
DecoderConfig small_decoder();
EncoderConfig small_encoder();
CnnConfig small_cnn();
// Layers of very different widths, so that interior masks leave gaps of all sizes.
MlpConfig uneven_mlp();
// Separable with norms; its side of 5 is halved to 3.
VggConfig small_vgg();
// Two stages of two cells, of which three have a skip; the side of 5 is halved to 3. One operation
// is zero.
MobilenetConfig small_mobilenet();
// Of the same boundaries. Every step from the second on is an architecture step.
SupernetConfig small_supernet();

TestModel encoder_model(const EncoderConfig& config = small_encoder());
TestModel decoder_model();
// The third and the fourth layer are one block.
TestModel uneven_mlp_model();
TestModel small_cnn_model();
// The norms' biases start at 0.1: at 0 a norm's weight would make no difference behind the next
// norm of the same channels, and so would have no gradient.
TestModel small_vgg_model(const VggConfig& config = small_vgg());
// Norms' biases start at 0.1, architecture parameters between -1 and 1.
TestModel mobilenet_model(const MobilenetConfig& config = small_mobilenet());
TestModel supernet_model(const SupernetConfig& config = small_supernet());
// The small mobilenet teaches a supernet of two stages.
TestModel distilled_supernet_model(const SupernetConfig& config = small_supernet());
TestModel distillation_model();
// A plain VGG teaches a separable one, both with norms over the batch.
TestModel distilled_vgg_model(bool student_has_norms = true);

}  // namespace frazil
