// Stages that share every micro-batch by samples train what one device trains, but for the rounding
// of sums in another order.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/exec/models/model_plans.h"
#include "tests/exec/models/normed_cnn.h"
#include "tests/exec/support/sliced_runs.h"

namespace frazil {
namespace {

// Returns the model's own mask, one with a frozen prefix, and one with a frozen block in the
// middle.
std::vector<std::string> masks_of(const TestModel& model) {
  std::vector<std::string> masks(3, model.mask);
  const auto first = model.mask.find('1');
  masks[1][first] = '0';
  masks[2][model.mask.find('1', first + 1)] = '0';
  return masks;
}

void expect_training_of_one_device(const TestModel& model) {
  constexpr std::array kKinds{ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                              ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1};
  constexpr std::array kMicroBatches{3, 1, 5, 8, 3};
  const std::vector<std::string> masks = masks_of(model);
  std::map<std::tuple<int, std::string, bool>, SlicedOutcome> known;
  std::size_t runs = 0;
  for (const auto& devices : sliced_distributions()) {
    for (const ScheduleKind kind : kKinds) {
      if (kind != ScheduleKind::kGpipe && !lie_apart(devices)) continue;
      SlicedForm one{devices, kind, kMicroBatches[runs % kMicroBatches.size()], masks[runs % 3]};
      one.recompute = runs % 4 == 1;
      one.order = runs % 2 == 0 ? MessageOrder::kByTag : MessageOrder::kAsSent;
      const bool clips = runs % 7 < 3;
      ++runs;
      SCOPED_TRACE(name_of(one));
      const OptimizerConfig optimizer = undecayed_sgd(clips ? 0.1 : 0);
      const auto [alone, added] = known.try_emplace({one.micro_batches, one.mask, clips});
      if (added) {
        alone->second = train_sliced(model, optimizer,
                                     {{{0}}, ScheduleKind::kGpipe, one.micro_batches, one.mask});
      }
      expect_same_training(train_sliced(model, optimizer, one), alone->second, 1e-6);
    }
  }
  EXPECT_GE(runs, 30U);
}

TEST(SlicedStage, OfAVisionTransformerWithDropoutTrainsAsOnOneDevice) {
  expect_training_of_one_device(vit_model());
}
TEST(SlicedStage, OfAnEncoderTrainsAsOnOneDevice) {
  expect_training_of_one_device(encoder_model());
}
TEST(SlicedStage, OfUnevenLayersTrainsAsOnOneDevice) {
  expect_training_of_one_device(uneven_mlp_model());
}
TEST(SlicedStage, OfAConvolutionalNetworkTrainsAsOnOneDevice) {
  expect_training_of_one_device(small_cnn_model());
}
TEST(SlicedStage, OfATeacherAndItsStudentTrainsAsOnOneDevice) {
  expect_training_of_one_device(distillation_model());
}
// The teacher normalises by running statistics, whatever samples a slice has.
TEST(SlicedStage, OfATeacherWithBatchNormAndAStudentWithoutTrainsAsOnOneDevice) {
  expect_training_of_one_device(distilled_vgg_model(/*student_has_norms=*/false));
}
// Frozen blocks run in evaluation mode.
TEST(SlicedStage, OfFrozenLayersWithBatchNormTrainsAsOnOneDevice) {
  const TestModel model = normed_cnn_model();
  const std::string mask = "000001";
  for (const auto& devices : sliced_distributions()) {
    const SlicedForm one{devices, ScheduleKind::kGpipe, 3, mask};
    SCOPED_TRACE(name_of(one));
    expect_same_training(train_sliced(model, undecayed_sgd(0), one),
                         train_sliced(model, undecayed_sgd(0), {{{0}}, one.schedule, 3, mask}),
                         1e-6);
  }
}
TEST(SlicedStage, OfADecoderWithATiedTableTrainsAsOnOneDevice) {
  expect_training_of_one_device(decoder_model());
}

// The momentum after one step is the averaged gradient: that of the batch in one piece.
TEST(SlicedStage, HasTheGradientOfTheFullBatch) {
  for (const TestModel& model : {vit_model(), distillation_model(), small_cnn_model()}) {
    for (const auto& devices : sliced_distributions()) {
      const SlicedForm one{devices, ScheduleKind::kGpipe, 1};
      SCOPED_TRACE(model.spec.name + ", " + name_of(one));
      expect_same_training(train_sliced(model, undecayed_sgd(0), one, 1),
                           train_sliced(model, undecayed_sgd(0), {{{0}}, one.schedule, 1}, 1),
                           1e-6);
    }
  }
}

// AdamW's first step is the rate times the sign of the gradient: equal wherever the gradient is
// more than the rounding of its sum. Elsewhere, and so in later steps, it moves by the rate at
// most.
TEST(SlicedStage, TakesAdamWsStepWhereAGradientIsMoreThanRounding) {
  OptimizerConfig optimizer = clipped_adamw();
  for (const TestModel& model : {vit_model(), encoder_model(), decoder_model()}) {
    for (const auto& devices : sliced_distributions()) {
      const SlicedForm one{devices, ScheduleKind::kGpipe};
      SCOPED_TRACE(model.spec.name + ", " + name_of(one));
      const SlicedOutcome expected =
          train_sliced(model, optimizer, {{{0}}, ScheduleKind::kGpipe}, 1);
      const SlicedOutcome found = train_sliced(model, optimizer, one, 1);
      for (std::size_t l = 0; l < expected.layers.size(); ++l) {
        const LayerState& own = expected.layers[l];
        for (std::size_t p = 0; p < own.parameters.size(); ++p) {
          const at::Tensor difference = (found.layers[l].parameters[p] - own.parameters[p]).abs();
          const at::Tensor& moment = own.first_moment[p];
          const at::Tensor counts = moment.abs() > 1e-3 * largest_element(moment);
          EXPECT_LE(largest_element(difference * counts),
                    1e-6 * std::max(largest_element(own.parameters[p]), 1.0));
          EXPECT_LE(largest_element(difference), 2.001 * kSlicedRate);
        }
      }
    }
  }
}

TEST(SlicedStage, TrainsTwiceToTheSameBits) {
  const TestModel model = vit_model();
  const SlicedForm one{{{0, 1}, {2, 3}}, ScheduleKind::kZbH1, 5};
  const SlicedOutcome first = train_sliced(model, undecayed_sgd(0.1), one);
  const SlicedOutcome second = train_sliced(model, undecayed_sgd(0.1), one);
  for (std::size_t l = 0; l < first.layers.size(); ++l) {
    for (std::size_t p = 0; p < first.layers[l].parameters.size(); ++p) {
      EXPECT_TRUE(at::equal(first.layers[l].parameters[p], second.layers[l].parameters[p]));
    }
  }
}

}  // namespace
}  // namespace frazil
