#include "planner/freezing/plasticity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kSamples = 5;
constexpr std::size_t kFeatures = 4;

std::vector<double> draw_outputs(std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<double> outputs(kSamples * kFeatures);
  for (double& output : outputs) output = normal(random);
  return outputs;
}

TEST(Plasticity, OfTwoOrthogonalSamplesThatBecomeEqualIsKnown) {
  const std::vector<double> then = make_sketch(std::vector<double>{3, 0, 0, 2}, 2);
  EXPECT_EQ(then, (std::vector<double>{1, 0, 0, 1}));
  const std::vector<double> now = make_sketch(std::vector<double>{1, 1, 1, 1}, 2);
  for (const double entry : now) EXPECT_NEAR(entry, std::sqrt(0.5), 1e-15);
  // Each of the two rows moves by (1 - 1/sqrt 2)^2 + 1/2 = 2 - sqrt 2; their sum is divided by 4.
  EXPECT_NEAR(plasticity(now, then), (2 - std::sqrt(2)) / 2, 1e-15);
}

// ||G - H||^2 = sum over rows of |g|^2 + |h|^2 - 2 g.h = 2 - 2 cos(angle of the rows).
TEST(Plasticity, IsTwoMinusTwoCosinesARow) {
  const unsigned seed = 31;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<double> a = draw_outputs(random);
    const std::vector<double> b = draw_outputs(random);
    double expected = 0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      double product = 0, of_a = 0, of_b = 0;
      for (std::size_t j = 0; j < kSamples; ++j) {
        double gram_a = 0, gram_b = 0;
        for (std::size_t f = 0; f < kFeatures; ++f) {
          gram_a += a[i * kFeatures + f] * a[j * kFeatures + f];
          gram_b += b[i * kFeatures + f] * b[j * kFeatures + f];
        }
        product += gram_a * gram_b;
        of_a += gram_a * gram_a;
        of_b += gram_b * gram_b;
      }
      expected += 2 - 2 * product / std::sqrt(of_a * of_b);
    }
    expected /= kSamples * kSamples;
    const double found = plasticity(make_sketch(a, kSamples), make_sketch(b, kSamples));
    ASSERT_NEAR(found, expected, 1e-12) << "trial " << trial;
    ASSERT_LE(found, 4.0 / kSamples);
  }
}

TEST(Plasticity, DoesNotSeeScaleOrRotation) {
  const unsigned seed = 32;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<double> outputs = draw_outputs(random);
  std::vector<double> turned = outputs;
  const double angle = 0.7;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const double x = outputs[i * kFeatures], y = outputs[i * kFeatures + 2];
    turned[i * kFeatures] = 5 * (std::cos(angle) * x - std::sin(angle) * y);
    turned[i * kFeatures + 2] = 5 * (std::sin(angle) * x + std::cos(angle) * y);
    turned[i * kFeatures + 1] *= 5;
    turned[i * kFeatures + 3] *= 5;
  }
  EXPECT_NEAR(plasticity(make_sketch(outputs, kSamples), make_sketch(turned, kSamples)), 0, 1e-15);
}

TEST(Plasticity, OfDeadOutputsIsANumber) {
  const std::vector<double> dead(kSamples * kFeatures, 0.0);
  EXPECT_EQ(plasticity(make_sketch(dead, kSamples), make_sketch(dead, kSamples)), 0);
  EXPECT_THROW(make_sketch(dead, 3), std::logic_error);
  EXPECT_THROW(plasticity(std::vector<double>(4), std::vector<double>(9)), std::logic_error);
}

}  // namespace
}  // namespace frazil
