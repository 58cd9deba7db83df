#include "traces/kineto/kineto_memory.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/traces/kineto/kineto_import.h"

namespace frazil {
namespace {

// Two layers, `a` and `b`, forward and backward; the update is 900 to 1000.
KinetoText two_layers(int rows = 0) {
  const std::string shapes = rows == 0 ? ""
                                       : R"("Input type": ["float", "float"], "Input Dims": [[)" +
                                             std::to_string(rows) + ", 3], [4, 3]], ";
  KinetoText text;
  text.range("layer:a", 1, 100, 200)
      .op("aten::linear", 1, 110, 190, 1, shapes)
      .range("layer:b", 1, 200, 300)
      .op("aten::linear", 1, 210, 290, 3, shapes)
      .node("AddmmBackward0", 1, 400, 500, 4)
      .accumulate(1, 500, 510)
      .node("AddmmBackward0", 1, 600, 700, 2)
      .accumulate(1, 700, 710)
      .range("Optimizer.step#AdamW.step", 1, 900, 1000)
      .op("aten::_foreach_add_", 1, 910, 990);
  return text;
}

std::vector<std::int64_t> stashes_of(const KinetoText& text) {
  std::vector<std::int64_t> stashes;
  for (const Layer& layer : import_text(text.text()).profile.layers) {
    stashes.push_back(layer.costs.front().stash.count);
  }
  return stashes;
}

TEST(KinetoMemory, CountsAtTheLayerWhoseBackwardFreesIt) {
  KinetoText text = two_layers();
  text.memory(1, 120, 0xa0, 10)       // kept by b, that reads it
      .memory(1, 130, 0xb0, 200)      // kept by a itself
      .memory(1, 140, 0xc0, 4000)     // scratch of a
      .memory(1, 150, 0xc0, -4000)    //
      .memory(1, 220, 0xd0, 30000)    // outlives the backward
      .memory(1, 450, 0xa0, -10)      //
      .memory(1, 460, 0xe0, 500000)   // a gradient
      .memory(1, 650, 0xb0, -200)     //
      .memory(1, 950, 0xf0, 6000000)  // the optimizer's
      .memory(1, 1100, 0xd0, -30000);
  EXPECT_EQ(stashes_of(text), (std::vector<std::int64_t>{200, 30010}));
  EXPECT_EQ(import_text(text.text()).profile.doubts.size(), 3U)
      << "of parameters, boundaries and optimizer state, not of stashes";
}

TEST(KinetoMemory, OfTheHostDoesNotCountBesideADevices) {
  KinetoText text = two_layers();
  text.memory(1, 120, 0xa0, 10)
      .memory(1, 125, 0xb0, 70, 1)
      .memory(1, 450, 0xa0, -10)
      .memory(1, 650, 0xb0, -70, 1);
  EXPECT_EQ(stashes_of(text), (std::vector<std::int64_t>{70, 0}));
}

TEST(KinetoMemory, IsInDoubtWhereItWasNotRecorded) {
  const ModelProfile profile = import_text(two_layers().text()).profile;
  ASSERT_FALSE(profile.doubts.empty());
  const auto stash = std::find_if(profile.doubts.begin(), profile.doubts.end(),
                                  [](const Doubt& d) { return d.fact == DoubtedFact::kStash; });
  ASSERT_NE(stash, profile.doubts.end());
  EXPECT_EQ(stash->kind, DoubtKind::kUnknown);
}

TEST(KinetoSamples, AreTheRowsThatTheFirstLayerReads) {
  const TraceFile told(two_layers(8).text());
  const KinetoImport import = import_kineto({told.path()}, {});
  EXPECT_EQ(import.report.micro_batch_size, 8);
  EXPECT_EQ(import.profile.layers.front().costs.front().micro_batch_size, 8);
  ASSERT_FALSE(import.profile.doubts.empty());
  EXPECT_EQ(import.profile.doubts.front().fact, DoubtedFact::kMicroBatchSize);
}

TEST(KinetoSamples, AreAskedForWhereTheTraceDoesNotTell) {
  const TraceFile silent(two_layers().text());
  try {
    import_kineto({silent.path()}, {});
    ADD_FAILURE() << "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "no --micro-batch-size");
  }
}

}  // namespace
}  // namespace frazil
