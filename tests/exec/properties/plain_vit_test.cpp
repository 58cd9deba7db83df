// A plain program trains the vision transformer: operations of libtorch alone, one autograd graph
// over the whole model per micro-batch, one optimizer call over all parameters. The executor, which
// cuts the model into layers, stages and pipelines, has its bits.
//
// No bits can be equal to those of one graph over the whole batch: a weight's gradient is then one
// matrix product over all rows, and that sums in another order than products over the rows of each
// micro-batch (stage_runner_test.cpp compares those up to rounding). Per micro-batch, with the sums
// of micro-batches as the design states them, the operations are the same in the same order.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <bit>
#include <cmath>

#include "tests/exec/models/model_checks.h"
#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/sliced_runs.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr std::uint64_t kPlainVitSeed = 7;
constexpr Step kPlainVitSteps = 3;

// The weights in the order of Hugging Face's names: embedding 4, each block 12, head 4.
class PlainVit {
 public:
  PlainVit(const VitConfig& config, const OptimizerConfig& optimizer)
      : config_(config), optimizer_(optimizer) {
    for (const Tensors& own : start_values(make_vit(config), kPlainVitSeed)) {
      weights_.insert(weights_.end(), own.begin(), own.end());
    }
  }

  double step(Step step, double rate, const std::vector<Samples>& micro_batches) {
    std::int64_t samples = 0;
    for (const Samples& some : micro_batches) samples += some.count();
    double loss = 0;
    std::vector<Tensors> gradients;
    for (std::size_t m = 0; m < micro_batches.size(); ++m) {
      const Samples& some = micro_batches[m];
      const double share = static_cast<double>(some.count()) / static_cast<double>(samples);
      const at::Tensor own =
          at::cross_entropy_loss(forward(some.inputs[0], {kPlainVitSeed, step, MicroBatchId{m}}),
                                 some.labels) *
          share;
      loss += own.item<double>();
      gradients.push_back(torch::autograd::grad({own}, weights_));
    }
    gradients_ = add(gradients, 0, gradients.size());
    update(rate);
    return loss;
  }

  const Tensors& weights() const { return weights_; }
  const Tensors& gradients() const { return gradients_; }  // of the last step, clipped
  const Tensors& first_moments() const { return first_; }
  const Tensors& second_moments() const { return second_; }

 private:
  at::Tensor forward(const at::Tensor& images, const RandomKey& key) const {
    const Tensors& w = weights_;
    const std::int64_t n = images.size(0);
    const std::int64_t patch = config_.patch;
    const at::Tensor patches = images.unfold(2, patch, patch)
                                   .unfold(3, patch, patch)
                                   .permute({0, 2, 3, 1, 4, 5})
                                   .reshape({n, -1, config_.channels * patch * patch});
    const at::Tensor tokens = at::linear(patches, w[0], w[1]);
    at::Tensor x = at::cat({w[2].expand({n, -1, -1}), tokens}, 1) + w[3];
    std::size_t next = 4;
    int layer = 1;
    for (int block = 0; block < config_.blocks; ++block) {
      x = x + drop(attend(norm(x, next), next + 2), config_.dropout, LayerId{layer++}, key, true);
      next += 6;
      const at::Tensor inner = at::gelu(at::linear(norm(x, next), w[next + 2], w[next + 3]));
      const at::Tensor outer = at::linear(inner, w[next + 4], w[next + 5]);
      x = x + drop(outer, config_.dropout, LayerId{layer++}, key, true);
      next += 6;
    }
    return at::linear(norm(x.narrow(1, 0, 1).squeeze(1), next), w[next + 2], w[next + 3]);
  }

  at::Tensor norm(const at::Tensor& x, std::size_t first) const {
    return at::layer_norm(x, {config_.dim}, weights_[first], weights_[first + 1], 1e-12);
  }

  at::Tensor attend(const at::Tensor& x, std::size_t first) const {
    const Tensors& w = weights_;
    const auto by_head = [&](const at::Tensor& rows) {
      return rows.unflatten(2, {config_.heads, config_.dim / config_.heads}).transpose(1, 2);
    };
    const Tensors parts = at::linear(x, w[first], w[first + 1]).chunk(3, 2);
    const at::Tensor mixed =
        at::scaled_dot_product_attention(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]));
    return at::linear(mixed.transpose(1, 2).flatten(2), w[first + 2], w[first + 3]);
  }

  // Adds the gradients of micro-batches [first, first + count): the largest power of two below the
  // count, then the rest.
  static Tensors add(const std::vector<Tensors>& gradients, std::size_t first, std::size_t count) {
    if (count == 1) return gradients[first];
    const std::size_t left = std::bit_ceil(count) / 2;
    const Tensors a = add(gradients, first, left);
    const Tensors b = add(gradients, first + left, count - left);
    Tensors sums;
    for (std::size_t p = 0; p < a.size(); ++p) sums.push_back(a[p] + b[p]);
    return sums;
  }

  void clip() {
    double squares = 0;
    for (const at::Tensor& gradient : gradients_) {
      squares += gradient.contiguous().to(at::kDouble).square().sum().item<double>();
    }
    const double scale = optimizer_.clip_norm / (std::sqrt(squares) + 1e-6);
    if (scale >= 1) return;
    for (at::Tensor& gradient : gradients_) gradient = gradient * scale;
  }

  void update(double rate) {
    const c10::NoGradGuard no_grad;
    if (optimizer_.clip_norm > 0) clip();
    for (at::Tensor& gradient : gradients_) gradient = gradient.contiguous();
    Tensors weights;
    for (const at::Tensor& weight : weights_) weights.push_back(weight.detach());
    const bool is_first = first_.empty();
    const bool is_adam = optimizer_.kind == OptimizerConfig::Kind::kAdamW;
    for (const at::Tensor& weight : weights) {
      if (is_first) first_.push_back(at::zeros_like(weight));
      if (is_first && is_adam) second_.push_back(at::zeros_like(weight));
    }
    if (!is_adam) {
      at::_fused_sgd_(weights, gradients_, first_, optimizer_.weight_decay, optimizer_.momentum,
                      rate, 0, false, false, is_first);
      return;
    }
    ++updates_;
    const Tensors counts(weights.size(), at::full({}, static_cast<double>(updates_)));
    at::_fused_adamw_(weights, gradients_, first_, second_, {}, counts, rate, optimizer_.beta1,
                      optimizer_.beta2, optimizer_.weight_decay, optimizer_.epsilon, false, false);
  }

  VitConfig config_;
  OptimizerConfig optimizer_;
  Tensors weights_;
  Tensors gradients_;
  Tensors first_;
  Tensors second_;
  int updates_ = 0;
};

// Compares byte by byte, and in one order of layers.
void expect_bits(Run& run, Tensors LayerState::*field, const Tensors& expected,
                 const std::string& what) {
  std::size_t next = 0;
  for (const LayerState* state : first_holders(run.pool().states(), kSmallLayers)) {
    for (const at::Tensor& tensor : state->*field) {
      const at::Tensor plain = expected.at(next).detach().contiguous();
      EXPECT_TRUE(at::equal(tensor.detach().view(at::kInt), plain.view(at::kInt)))
          << what << " " << next;
      ++next;
    }
  }
  EXPECT_EQ(next, expected.size()) << what;
}

VitConfig with_dropout() {
  VitConfig config = small_config();
  config.dropout = 0.1;
  return config;
}

struct NamedShape {
  PlanShape plan;
  std::string name;
};
const std::vector<NamedShape>& named_shapes() {
  static const std::vector<NamedShape> all = {
      {{}, "one device"},
      {{.cuts = {{4}}}, "two stages"},
      {{.schedule = ScheduleKind::kZbH1, .cuts = {{2, 5}}}, "three stages, split backward"},
      {{.cuts = {{3}, {}}, .owned = {4, 2}}, "unequal replicas"}};
  return all;
}

// The last of three steps lacks a micro-batch and two samples.
std::vector<Samples> samples_of(Step step) {
  const bool is_short = step == 2;
  return small_micro_batches(step, is_short ? 5 : 6, is_short ? 2 : 0);
}

TEST(Vit, HasTheBitsOfAPlainProgram) {
  for (const bool adam : {true, false}) {
    OptimizerConfig optimizer{.learning_rate = 1e-2, .clip_norm = 0.5};
    if (!adam) optimizer.kind = OptimizerConfig::Kind::kSgd;
    PlainVit plain(with_dropout(), optimizer);
    std::vector<double> losses;
    for (Step step = 0; step < kPlainVitSteps; ++step) {
      losses.push_back(
          plain.step(step, changing_rate(optimizer, step, kPlainVitSteps), samples_of(step)));
    }
    for (const NamedShape& shape : named_shapes()) {
      SCOPED_TRACE(shape.name + (adam ? ", AdamW" : ", SGD"));
      frazil::Run run(make_vit(with_dropout()), optimizer, kPlainVitSeed, devices_of(shape.plan));
      run.transition_to(make_small_plan(run.structure(), shape.plan));
      for (Step step = 0; step < kPlainVitSteps; ++step) {
        const double rate = changing_rate(optimizer, step, kPlainVitSteps);
        EXPECT_EQ(run.step(step, rate, samples_of(step)).loss,
                  losses[static_cast<std::size_t>(step)]);
      }
      expect_bits(run, &LayerState::parameters, plain.weights(), "weight");
      expect_bits(run, &LayerState::first_moment, plain.first_moments(), "first moment");
      expect_bits(run, &LayerState::second_moment, plain.second_moments(), "second moment");
    }
  }
}

// The momentum is the gradient after one step of SGD without decay.
TEST(Vit, HasTheGradientsOfAPlainProgramBitForBit) {
  for (const double clip_norm : {0.0, 0.5}) {
    const OptimizerConfig optimizer = undecayed_sgd(clip_norm);
    PlainVit plain(with_dropout(), optimizer);
    plain.step(2, 1e-2, samples_of(2));
    for (const NamedShape& shape : named_shapes()) {
      SCOPED_TRACE(shape.name + ", clipped at " + std::to_string(clip_norm));
      frazil::Run run(make_vit(with_dropout()), optimizer, kPlainVitSeed, devices_of(shape.plan));
      run.transition_to(make_small_plan(run.structure(), shape.plan));
      run.step(2, 1e-2, samples_of(2));
      expect_bits(run, &LayerState::first_moment, plain.gradients(), "gradient");
    }
  }
}

TEST(Vit, UnderMasksHasTheBitsOfAPlainProgram) {
  for (const std::string mask : {"11111", "01111", "00111", "00011", "00001", "10101", "01011"}) {
    expect_plain_bits(vit_model(), mask);
  }
}

}  // namespace
}  // namespace frazil
