#include "exec/models/parametric_operations.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace frazil {
namespace {

// Draws random tensors, the same in every run.
class Draw {
 public:
  at::Tensor operator()(at::IntArrayRef shape) {
    return at::empty(shape).normal_(0, 1, generator_);
  }
  at::Tensor leaf(at::IntArrayRef shape) { return (*this)(shape).set_requires_grad(true); }

 private:
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(3);
};

void expect_bits_of_autograd(const ParametricOperation& operation, const Tensors& parameters,
                             const at::Tensor& gradient) {
  ASSERT_TRUE(operation.differentiate);
  const Tensors found = operation.differentiate(gradient);
  Tensors leaves;
  for (const std::size_t p : operation.parameters) leaves.push_back(parameters[p]);
  const Tensors expected = torch::autograd::grad({operation.output}, leaves, {gradient},
                                                 /*retain_graph=*/true);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(at::equal(found[i], expected[i])) << "parameter " << operation.parameters[i];
    EXPECT_EQ(found[i].strides(), expected[i].strides());
  }
}

TEST(ParametricOperations, ALinearLayerDifferentiatesItselfInTheBitsOfAutograd) {
  Draw draw;
  const Tensors parameters{draw.leaf({10, 24}), draw.leaf({10})};
  const at::Tensor tokens = draw({6, 5, 24});
  for (const at::Tensor& x : {draw({7, 24}), tokens.select(1, 0), tokens, draw({3, 2, 5, 24})}) {
    ParametricOperationList list;
    const ParametricOperations operations(parameters, &list);
    const at::Tensor y = operations.linear(x, 0, 1);
    expect_bits_of_autograd(list.at(0), parameters, draw(y.sizes()));
    expect_bits_of_autograd(list.at(0), parameters,
                            draw({10, y.numel() / 10}).t().reshape(y.sizes()));
  }
}

TEST(ParametricOperations, ANormDifferentiatesItselfInTheBitsOfAutograd) {
  Draw draw;
  const Tensors parameters{draw.leaf({24}), draw.leaf({24})};
  for (const at::Tensor& x : {draw({7, 24}), draw({6, 5, 24}), draw({5, 6, 24}).transpose(0, 1)}) {
    ParametricOperationList list;
    const at::Tensor y =
        ParametricOperations(parameters, &list).layer_norm(x, 0, 1, /*epsilon=*/1e-5);
    expect_bits_of_autograd(list.at(0), parameters, draw(y.sizes()));
  }
}

TEST(ParametricOperations, WhereOnlyTheEngineKnowsItIsAsked) {
  Draw draw;
  const Tensors parameters{draw.leaf({4, 8}), draw.leaf({4})};
  ParametricOperationList list;
  ParametricOperations(parameters, &list).linear(draw({8, 5, 6}).transpose(0, 2), 0, 1);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_FALSE(list[0].differentiate);
}

TEST(ParametricOperations, WithoutAListenerNothingIsKept) {
  Draw draw;
  const Tensors parameters{draw.leaf({10, 24}), draw.leaf({10})};
  const at::Tensor x = draw({7, 24});
  const at::Tensor y = ParametricOperations(parameters, nullptr).linear(x, 0, 1);
  EXPECT_TRUE(at::equal(y, at::linear(x, parameters[0], parameters[1])));
}

}  // namespace
}  // namespace frazil
