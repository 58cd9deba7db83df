// The fused kernels are compared with the formulas, by hand and in double.

#include "exec/state/optimizer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/support/random_tensors.h"

namespace frazil {
namespace {

constexpr int kSteps = 5;
constexpr double kOptimizerRate = 0.01;

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous().view(-1);
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

// Loshchilov & Hutter 2019, algorithm 2, with the rate of a step as its schedule multiplier.
class AdamWByHand {
 public:
  explicit AdamWByHand(const OptimizerConfig& config) : c_(config) {}

  void update(std::vector<double>& weights, const std::vector<double>& gradient) {
    first_.resize(weights.size());
    second_.resize(weights.size());
    ++step_;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      first_[i] = c_.beta1 * first_[i] + (1 - c_.beta1) * gradient[i];
      second_[i] = c_.beta2 * second_[i] + (1 - c_.beta2) * gradient[i] * gradient[i];
      const double mean = first_[i] / (1 - std::pow(c_.beta1, step_));
      const double square = second_[i] / (1 - std::pow(c_.beta2, step_));
      weights[i] -=
          kOptimizerRate * (mean / (std::sqrt(square) + c_.epsilon) + c_.weight_decay * weights[i]);
    }
  }

 private:
  OptimizerConfig c_;
  int step_ = 0;
  std::vector<double> first_;
  std::vector<double> second_;
};

// Sutskever et al. 2013 in PyTorch's form: buffer = momentum buffer + (g + decay w), w -= rate
// buffer.
class SgdByHand {
 public:
  explicit SgdByHand(const OptimizerConfig& config) : c_(config) {}

  void update(std::vector<double>& weights, const std::vector<double>& gradient) {
    buffer_.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      buffer_[i] = c_.momentum * buffer_[i] + gradient[i] + c_.weight_decay * weights[i];
      weights[i] -= kOptimizerRate * buffer_[i];
    }
  }

 private:
  OptimizerConfig c_;
  std::vector<double> buffer_;
};

// Returns the largest difference after each of some steps, relative to 1 + |w|.
template <class ByHand>
double largest_error(const OptimizerConfig& config) {
  RandomTensors random(21);
  LayerState state;
  state.parameters = {random.draw({6, 5}), random.draw({9})};
  set_active(state, true);
  std::vector<std::vector<double>> weights;
  std::vector<ByHand> by_hand;
  for (const at::Tensor& parameter : state.parameters) {
    weights.push_back(values_of(parameter));
    by_hand.emplace_back(config);
  }
  double largest = 0;
  for (int step = 0; step < kSteps; ++step) {
    const Tensors gradients{random.draw({6, 5}), random.draw({9})};
    std::vector<std::vector<double>> exact;
    for (const at::Tensor& gradient : gradients) exact.push_back(values_of(gradient));
    update_layer(state, gradients, config, kOptimizerRate);
    for (std::size_t p = 0; p < weights.size(); ++p) {
      by_hand[p].update(weights[p], exact[p]);
      const std::vector<double> got = values_of(state.parameters[p]);
      for (std::size_t i = 0; i < got.size(); ++i) {
        largest =
            std::max(largest, std::abs(got[i] - weights[p][i]) / (1 + std::abs(weights[p][i])));
      }
    }
  }
  EXPECT_EQ(state.updates, kSteps);
  return largest;
}

TEST(Optimizer, AdamWFollowsItsFormula) {
  EXPECT_LT(largest_error<AdamWByHand>({}), 1e-6);
  OptimizerConfig other;
  other.beta1 = 0.5;
  other.beta2 = 0.9;
  other.epsilon = 0.1;
  other.weight_decay = 0;
  EXPECT_LT(largest_error<AdamWByHand>(other), 1e-6);
}

TEST(Optimizer, SgdFollowsItsFormula) {
  OptimizerConfig config;
  config.kind = OptimizerConfig::Kind::kSgd;
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.2}) {
      config.momentum = momentum;
      config.weight_decay = decay;
      EXPECT_LT(largest_error<SgdByHand>(config), 1e-6) << momentum << ", " << decay;
    }
  }
}

TEST(Optimizer, HoldsTheBytesItSays) {
  OptimizerConfig config;
  EXPECT_EQ(optimizer_bytes_per_parameter_byte(config), 2);
  config.kind = OptimizerConfig::Kind::kSgd;
  EXPECT_EQ(optimizer_bytes_per_parameter_byte(config), 1);
  config.momentum = 0;
  EXPECT_EQ(optimizer_bytes_per_parameter_byte(config), 0);
  for (const auto kind : {OptimizerConfig::Kind::kAdamW, OptimizerConfig::Kind::kSgd}) {
    for (const double momentum : {0.0, 0.9}) {
      config.kind = kind;
      config.momentum = momentum;
      LayerState state;
      state.parameters = {at::zeros({10}), at::zeros({3})};
      const Bytes parameters = bytes_of(state);
      update_layer(state, {at::ones({10}), at::ones({3})}, config, kOptimizerRate);
      EXPECT_EQ(bytes_of(state), parameters * (1 + optimizer_bytes_per_parameter_byte(config)));
    }
  }
}

// Rules as of two groups beside the optimizer's own, spread over the parameters.
const std::vector<ParameterRule> kMixedRules{{0.2, 1}, {0, 1}, {0.2, 1}, {0.05, 3}, {0, 1}};

// Takes some steps with these rules, and beside them with the fused kernel for one parameter at a
// time, as torch.optim does with a group for each.
void expect_bits_of_single_groups(OptimizerConfig config) {
  RandomTensors random(5);
  LayerState state;
  for (int p = 0; p < 5; ++p) state.parameters.push_back(random.draw({3 + p, 7}));
  set_active(state, true);
  const c10::NoGradGuard no_grad;
  Tensors alone;
  Tensors first;
  Tensors second;
  for (const at::Tensor& parameter : state.parameters) {
    alone.push_back(parameter.detach().clone());
    first.push_back(at::zeros_like(alone.back()));
    second.push_back(at::zeros_like(alone.back()));
  }
  for (int step = 0; step < kSteps; ++step) {
    Tensors gradients;
    for (const at::Tensor& parameter : alone) gradients.push_back(random.draw(parameter.sizes()));
    for (std::size_t p = 0; p < alone.size(); ++p) {
      const double rate = kOptimizerRate * kMixedRules[p].learning_rate_scale;
      const double decay = kMixedRules[p].weight_decay;
      if (config.kind == OptimizerConfig::Kind::kAdamW) {
        at::_fused_adamw_({alone[p]}, {gradients[p]}, {first[p]}, {second[p]}, {},
                          {at::scalar_tensor(step + 1, at::kFloat)}, rate, config.beta1,
                          config.beta2, decay, config.epsilon, false, false);
      } else {
        at::_fused_sgd_({alone[p]}, {gradients[p]}, {first[p]}, decay, config.momentum, rate, 0,
                        false, false, step == 0);
      }
    }
    update_layer(state, gradients, config, kOptimizerRate, kMixedRules);
  }
  for (std::size_t p = 0; p < alone.size(); ++p) {
    EXPECT_TRUE(at::equal(alone[p], state.parameters[p].detach())) << "parameter " << p;
  }
}

TEST(Optimizer, GivesEachParameterItsOwnDecayAndRate) {
  expect_bits_of_single_groups({});
  expect_bits_of_single_groups({.kind = OptimizerConfig::Kind::kSgd});
}

TEST(Optimizer, LeavesParametersThatDoNotTrainAlone) {
  RandomTensors random(6);
  LayerState all;
  LayerState some;
  for (int p = 0; p < 4; ++p) {
    all.parameters.push_back(random.draw({p + 2}));
    some.parameters.push_back(all.parameters.back().clone());
  }
  some.untrainable = {0, 2};
  set_active(all, true);
  set_active(some, true);
  const Tensors before{some.parameters[0].detach().clone(), some.parameters[2].detach().clone()};
  for (int step = 0; step < kSteps; ++step) {
    Tensors gradients;
    for (const at::Tensor& parameter : all.parameters) {
      gradients.push_back(random.draw(parameter.sizes()));
    }
    update_layer(some, {gradients[1].clone(), gradients[3].clone()}, {}, kOptimizerRate);
    update_layer(all, gradients, {}, kOptimizerRate);
  }
  EXPECT_TRUE(at::equal(some.parameters[0], before[0]));
  EXPECT_TRUE(at::equal(some.parameters[2], before[1]));
  EXPECT_TRUE(at::equal(some.parameters[1], all.parameters[1]));
  EXPECT_TRUE(at::equal(some.parameters[3], all.parameters[3]));
  ASSERT_EQ(some.first_moment.size(), 2U);
  EXPECT_EQ(bytes_of_moments(some), Bytes{2 * 4 * (3 + 5)});
  EXPECT_FALSE(some.parameters[0].requires_grad());
  EXPECT_TRUE(some.parameters[1].requires_grad());
}

// So does PyTorch with a parameter whose gradient is None: momentum and decay pass over it.
TEST(Optimizer, LeavesWhatAStepDoesNotMoveAsItIs) {
  for (const auto kind : {OptimizerConfig::Kind::kAdamW, OptimizerConfig::Kind::kSgd}) {
    RandomTensors random(8);
    LayerState state;
    state.parameters = {random.draw({4}), random.draw({3, 2})};
    set_active(state, true);
    LayerState alone;
    alone.parameters = {state.parameters[1].detach().clone()};
    set_active(alone, true);
    const OptimizerConfig config{.kind = kind};
    const auto take_step = [&](const std::vector<bool>& moved) {
      const Tensors gradients{random.draw({4}), random.draw({3, 2})};
      update_layer(alone, {gradients[1].clone()}, config, kOptimizerRate);
      update_layer(state, gradients, config, kOptimizerRate, {}, moved);
    };
    take_step({});
    const LayerState before = clone(state);
    take_step({false, true});
    EXPECT_TRUE(at::equal(state.parameters[0], before.parameters[0]));
    EXPECT_TRUE(at::equal(state.first_moment[0], before.first_moment[0]));
    EXPECT_TRUE(at::equal(state.parameters[1], alone.parameters[0]));
    EXPECT_TRUE(at::equal(state.first_moment[1], alone.first_moment[0]));
    EXPECT_EQ(state.updates, 2);
  }
}

TEST(Optimizer, TakesOneGradientPerParameter) {
  LayerState state;
  state.parameters = {at::zeros({2})};
  EXPECT_THROW(update_layer(state, {}, {}, kOptimizerRate), std::logic_error);
}

}  // namespace
}  // namespace frazil
