// What policies count as blocks of a model.

#include "planner/freezing/run_shape.h"

#include <gtest/gtest.h>

#include "tests/support/sample_models.h"

namespace frazil {
namespace {

ModelProfile chain() { return make_chain(4, Duration{1}, Duration{1}, Duration{1}); }

TEST(RunShape, CountsAllBlocksOfAModelWhoseLastOneTrains) {
  const RunShape shape = shape_run(chain(), 60, 6, 9);
  EXPECT_EQ(shape.blocks, 4);
  EXPECT_EQ(shape.counted(), 4);
  EXPECT_EQ(shape.layers(), 2);
  EXPECT_EQ(shape.steps, 60);
  EXPECT_EQ(shape.steps_per_epoch, 6);
  EXPECT_EQ(shape.seed, 9U);
}

TEST(RunShape, LeavesOutTheLastBlocksWithoutParametersOrWithNoneThatTrains) {
  ModelProfile model = chain();
  model.layers[3].parameters = Bytes{0};
  model.layers[2].untrainable = model.layers[2].parameters;
  model.layers[0].parameters = Bytes{0};
  const RunShape shape = shape_run(model, 60, 6, 0);
  EXPECT_EQ(shape.blocks, 4);
  EXPECT_EQ(shape.counted(), 2) << "what comes before a block that trains counts";
  EXPECT_EQ(shape.layers(), 0);
}

TEST(RunShape, CountsABlockThatTrainsAParameterOfAnother) {
  ModelProfile model = chain();
  model.layers[3].parameters = Bytes{0};
  model.tied = {{.name = "embedding", .bytes = Bytes{8}, .layers = {LayerId{0}, LayerId{3}}}};
  EXPECT_EQ(shape_run(model, 60, 6, 0).counted(), 4);
  model.tied[0].trainable = false;
  EXPECT_EQ(shape_run(model, 60, 6, 0).counted(), 3);
}

TEST(RunShape, LeavesOneBlockOfAModelInWhichNothingTrains) {
  ModelProfile model = chain();
  for (Layer& layer : model.layers) layer.parameters = Bytes{0};
  EXPECT_EQ(shape_run(model, 60, 6, 0).counted(), 1);
}

}  // namespace
}  // namespace frazil
