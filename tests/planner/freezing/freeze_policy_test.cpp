#include "planner/freezing/freeze_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace frazil {
namespace {

struct GoldenRow {
  double alpha;
  int layers;
  std::vector<int> frozen;  // at interval 0..9
};

// Holds He et al. 2021, eq. 1, with its bound always active and its results rounded up.
const std::vector<GoldenRow>& golden_rows() {
  static const std::vector<GoldenRow> rows{
      {1.0 / 5, 12, {0, 3, 5, 6, 8, 9, 9, 10, 10, 11}},
      {1.0 / 4, 12, {0, 3, 6, 7, 9, 10, 10, 11, 11, 12}},
      {1.0 / 3, 12, {0, 4, 7, 9, 10, 11, 11, 12, 12, 12}},
      {2.0 / 5, 12, {0, 5, 8, 10, 11, 12, 12, 12, 12, 12}},
      {1.0 / 2, 12, {0, 6, 9, 11, 12, 12, 12, 12, 12, 12}},
      {0.07, 12, {0, 1, 2, 3, 4, 4, 5, 5, 6, 6}},
      {1.0 / 5, 24, {0, 5, 9, 12, 15, 17, 18, 19, 20, 21}},
      {1.0 / 4, 24, {0, 6, 11, 14, 17, 19, 20, 21, 22, 23}},
      {1.0 / 3, 24, {0, 8, 14, 17, 20, 21, 22, 23, 24, 24}},
      {2.0 / 5, 24, {0, 10, 16, 19, 21, 23, 23, 24, 24, 24}},
      {1.0 / 2, 24, {0, 12, 18, 21, 23, 24, 24, 24, 24, 24}},
      {0.07, 24, {0, 2, 4, 5, 7, 8, 9, 10, 11, 12}},
  };
  return rows;
}

TEST(FreezePolicy, FreezesAsManyLayersAsTheReleasedCode) {
  for (const GoldenRow& row : golden_rows()) {
    SCOPED_TRACE("alpha " + std::to_string(row.alpha) + ", L " + std::to_string(row.layers));
    std::vector<int> frozen;
    for (int interval = 0; interval < 10; ++interval) {
      frozen.push_back(alpha_frozen_layers(row.layers, row.alpha, interval));
    }
    EXPECT_EQ(frozen, row.frozen);
  }
}

// Follows the recursion of eq. 1 (He et al. 2021) with its bound always active:
// L_f(0) = 0, L_f(T) = L_f(T-1) + alpha (L - L_f(T-1)).
TEST(FreezePolicy, AlphaFreezesTheRecursionRoundedUp) {
  for (const double alpha : {0.07, 1.0 / 5, 1.0 / 4, 1.0 / 3, 2.0 / 5, 1.0 / 2, 0.9}) {
    for (const int layers : {1, 12, 24, 96}) {
      double bound = 0;
      for (int interval = 0; interval <= 50; ++interval) {
        EXPECT_EQ(alpha_frozen_layers(layers, alpha, interval),
                  static_cast<int>(std::ceil(bound - kRoundingNoise)))
            << alpha << " " << layers << " " << interval;
        bound += alpha * (layers - bound);
      }
    }
  }
}

TEST(FreezePolicy, RoundingNoiseNeverFreezesOneLayerMore) {
  // The exact value of 10 (1 - 0.9) is 1; doubles give 0.9999999999999998 or 1.0000000000000002.
  EXPECT_EQ(alpha_frozen_layers(10, 0.1, 1), 1);
  EXPECT_EQ(alpha_frozen_layers(100, 0.3, 1), 30);
  EXPECT_EQ(alpha_frozen_layers(100, 0.7, 1), 70);
  EXPECT_EQ(alpha_frozen_layers(1000, 0.3, 2), 510);
}

TEST(FreezePolicy, NoFreezeKeepsEveryBlockActive) {
  for (const Step step : {Step{0}, Step{1}, Step{1'000'000}}) {
    EXPECT_EQ(want_by_step(NoFreeze{}, step, {.blocks = 5})->mask.text(), "11111");
  }
}

TEST(FreezePolicy, AlphaFreezesEmbeddingAndBlocksFromItsStartAndEveryInterval) {
  const AlphaFreeze policy{.alpha = 1.0 / 3, .start = 10, .interval = 5};
  const auto text = [&](Step step) {
    return want_by_step(policy, step, {.blocks = 14})->mask.text();
  };
  EXPECT_EQ(text(0), "11111111111111");
  EXPECT_EQ(text(9), "11111111111111");
  EXPECT_EQ(text(10), "00000111111111");  // T = 1, L_f = 4: embedding and blocks 1 to 4
  EXPECT_EQ(text(14), "00000111111111");
  EXPECT_EQ(text(15), "00000000111111");  // T = 2, L_f = 7
  EXPECT_EQ(text(40), "00000000000001");  // T = 7, L_f = 12: the head alone trains
  EXPECT_EQ(text(Step{1} << 60), "00000000000001");
}

TEST(FreezePolicy, ModelsWithoutTransformerBlocksNeverFreeze) {
  const AlphaFreeze policy{.alpha = 0.5, .start = 0, .interval = 1};
  EXPECT_EQ(want_by_step(policy, 100, {.blocks = 1})->mask.text(), "1");
  EXPECT_EQ(want_by_step(policy, 100, {.blocks = 2})->mask.text(), "11");
  EXPECT_EQ(want_by_step(policy, 0, {.blocks = 3})->mask.text(), "001");
}

TEST(FreezePolicy, RefusesAnAlphaOutsideZeroAndOne) {
  EXPECT_THROW(alpha_frozen_layers(12, 0.0, 1), std::logic_error);
  EXPECT_THROW(alpha_frozen_layers(12, 1.0, 1), std::logic_error);
  EXPECT_THROW(alpha_frozen_layers(12, std::nan(""), 1), std::logic_error);
  EXPECT_THROW(
      want_by_step(AlphaFreeze{.alpha = 0.5, .start = 0, .interval = 0}, 1, {.blocks = 14}),
      std::logic_error);
}

}  // namespace
}  // namespace frazil
