// A holder that gives a layer up hands it over, whoever else keeps it.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "exec/state/layer_moves.h"
#include "tests/exec/support/moved_layers.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

LayerState one_value() {
  LayerState state;
  state.parameters = {at::ones({1})};
  return state;
}

// Puts replicas on `holders` where the plan wants them on `wanted`. Returns how many layers were
// copied.
int copied(const std::vector<std::size_t>& holders, const std::vector<DeviceId>& wanted) {
  std::vector<DeviceState> states(3);
  for (const std::size_t device : holders) {
    for (int l = 0; l < kSmallLayers; ++l) states[device][LayerId{l}] = one_value();
  }
  Plan plan;
  for (const DeviceId device : wanted) {
    plan.pipelines.push_back(
        make_pipeline(kSmallLayers, {}, {device}, {MicroBatchId{0}, MicroBatchId{0}}));
  }
  return move_layers(states, plan, kSmallLayers).layers_copied;
}

TEST(MoveLayers, HandsOverThoughALaterDeviceHasTheLayerAlready) {
  EXPECT_EQ(copied({0, 2}, {DeviceId{1}, DeviceId{2}}), 0);
}

TEST(MoveLayers, HandsOverThoughAnEarlierDeviceKeepsTheLayer) {
  EXPECT_EQ(copied({0, 1}, {DeviceId{0}, DeviceId{2}}), 0);
}

}  // namespace
}  // namespace frazil
