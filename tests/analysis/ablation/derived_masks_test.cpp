#include "analysis/ablation/derived_masks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

FreezeTrace trace_of(const std::vector<std::string>& masks) {
  FreezeTrace trace;
  trace.model_hash = "0123456789abcdef";
  trace.blocks.assign(masks.front().size(), "block");
  trace.steps = 40;
  trace.batch_size = 8;
  trace.provenance["rates"] = "{}";
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const auto step = static_cast<Step>(10 * i);
    trace.events.push_back(
        {step, MaskEvent{FreezeMask::parse(masks[i], "masks", 0), "alpha", "x"}});
    trace.events.push_back({step, CostEvent{10, 80, Duration{1}}});
  }
  return trace;
}

std::vector<std::string> masks_in(const FreezeTrace& trace) {
  std::vector<std::string> masks;
  for (const FreezeEvent& event : trace.events) {
    masks.push_back(std::get<MaskEvent>(event.what).mask.text());
  }
  return masks;
}

TEST(DerivedMasks, FromTheTopFreezeAsManyBlocksBelowTheHead) {
  const FreezeTrace derived =
      derive_masks(trace_of({"11111", "00111", "00001", "10101"}), ArmFacts::Masks::kReversed, 1);
  EXPECT_EQ(masks_in(derived), (std::vector<std::string>{"11111", "11001", "00001", "11001"}));
  EXPECT_TRUE(derived.provenance.empty());
  EXPECT_EQ(derived.events[1].step, 10);
  EXPECT_EQ(parse_freeze_trace(to_jsonl(derived), "masks.jsonl"), derived);
}

TEST(DerivedMasks, DrawnOnesFreezeAsManyBlocksAndKeepThem) {
  std::set<std::vector<std::string>> drawn;
  for (std::int64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const FreezeTrace all = trace_of({"111111", "011111", "000111", "000001"});
    const std::vector<std::string> masks =
        masks_in(derive_masks(all, ArmFacts::Masks::kDrawn, seed));
    EXPECT_EQ(masks, masks_in(derive_masks(all, ArmFacts::Masks::kDrawn, seed)));
    const std::vector<int> frozen{0, 1, 3, 5};
    ASSERT_EQ(masks.size(), 4U);
    for (std::size_t i = 0; i < masks.size(); ++i) {
      EXPECT_EQ(std::count(masks[i].begin(), masks[i].end(), '0'), frozen[i]);
      EXPECT_EQ(masks[i].back(), '1');
      for (std::size_t block = 0; i > 0 && block < masks[i].size(); ++block) {
        EXPECT_LE(masks[i][block], masks[i - 1][block]);
      }
    }
    drawn.insert(masks);
  }
  EXPECT_GT(drawn.size(), 15U);
}

}  // namespace
}  // namespace frazil
