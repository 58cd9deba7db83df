// Tests layer times as straight lines over the micro-batch size.

#include "planner/reproduce/affine_profile.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using Rows = std::vector<std::pair<int, Duration>>;

TEST(AffineTime, GoesThroughRowsThatLieOnALine) {
  const AffineTime line =
      fit_affine({{1, Duration{1300}}, {4, Duration{2200}}, {64, Duration{20200}}});
  EXPECT_NEAR(line.fixed, 1000, 1e-6);
  EXPECT_NEAR(line.per_sample, 300, 1e-8);
}

TEST(AffineTime, OfOneRowHasNoFixedPart) {
  EXPECT_EQ(fit_affine({{4, Duration{1000}}}), (AffineTime{0, 250}));
}

TEST(AffineTime, OfRowsWithoutTimeIsNextToNothing) {
  const AffineTime line = fit_affine({{1, Duration{0}}, {2, Duration{0}}});
  EXPECT_NEAR(line.fixed, 1, 1e-9);
  EXPECT_NEAR(line.per_sample, 0, 1e-9);
}

double loss_of(const AffineTime& line, const Rows& rows) {
  double loss = 0;
  for (const auto& [size, time] : rows) {
    const double relative =
        (line.fixed + line.per_sample * size) / static_cast<double>(time.count()) - 1;
    loss += relative * relative;
  }
  return loss;
}

// The sum of squares is least if no small change of either parameter makes it smaller.
TEST(AffineTime, HasTheLeastSquaresOfRelativeResiduals) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::int64_t> time(1'000, 1'000'000);
    Rows rows;
    for (int size = 1; size <= 128; size *= 2) rows.emplace_back(size, Duration{time(random)});
    const AffineTime best = fit_affine(rows);
    const double loss = loss_of(best, rows);
    for (const double step : {-1.0, 1.0}) {
      EXPECT_GT(loss_of({best.fixed + step, best.per_sample}, rows), loss);
      EXPECT_GT(loss_of({best.fixed, best.per_sample + step}, rows), loss);
    }
  }
}

TEST(AffineProfile, ReplacesTimesAndNothingElse) {
  ModelProfile profile = make_chain(2, Duration{1000}, Duration{400}, Duration{601});
  ASSERT_EQ(profile.layers[0].costs.size(), 2U) << "of 1 and 64 samples, in proportion";
  EXPECT_EQ(make_affine_profile(profile).layers[0].costs[0].forward, Duration{1000});
  EXPECT_EQ(make_affine_profile(profile).layers[0].costs[1].backward_weight, Duration{1001 * 64});
  EXPECT_EQ(make_affine_profile(profile).layers[1].costs[1].backward_input, Duration{1001 * 32});

  const ModelProfile half = make_affine_profile(profile, {.fixed = 1, .per_sample = 0.5});
  EXPECT_EQ(half.layers[1].costs[0].forward, Duration{500});
  EXPECT_EQ(half.layers[1].costs[0].backward_input, Duration{250});
  EXPECT_EQ(half.layers[1].costs[0].backward_weight, Duration{251});
  EXPECT_EQ(half.layers[1].costs[1].stash, profile.layers[1].costs[1].stash);
  EXPECT_EQ(model_hash(half), model_hash(profile));
}

TEST(AffineProfile, ScalesTheFixedPartAlone) {
  ModelProfile profile = make_chain(1, Duration{1000}, Duration{0}, Duration{0});
  for (CostSample& cost : profile.layers[0].costs) cost.forward += Duration{600};
  const ModelProfile half = make_affine_profile(profile, {.fixed = 0.5, .per_sample = 1});
  EXPECT_EQ(half.layers[0].costs[0].forward, Duration{1300});
  EXPECT_EQ(half.layers[0].costs[1].forward, Duration{64300});
}

}  // namespace
}  // namespace frazil
