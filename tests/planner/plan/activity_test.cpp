#include "planner/plan/activity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

ModelProfile chain(int layers) {
  return make_chain(layers, milliseconds{1}, milliseconds{1}, milliseconds{1});
}

FreezeMask mask(const std::string& bits) { return FreezeMask::parse(bits, "test", 1); }

// Writes one letter per layer: F for forward only, I, W, or B for both, - for an idle layer.
std::string picture(const Activity& activity) {
  std::string text;
  for (const LayerActivity& layer : activity.layers) {
    if (layer.idle) {
      text += "-";
      continue;
    }
    const char* letters[2][2] = {{"F", "W"}, {"I", "B"}};
    text += letters[layer.input_gradient ? 1 : 0][layer.weight_gradient ? 1 : 0];
  }
  return text;
}

Edge edge(int from, int to, EdgeKind kind = EdgeKind::kGradient) {
  return {LayerId{from}, LayerId{to}, kind, {Bytes{1}}};
}

TEST(Activity, FirstActiveLayerOfAChainNeedsItsWeightGradientAlone) {
  EXPECT_EQ(picture(find_activity(chain(4), mask("1111"))), "WBBB");
}

TEST(Activity, FrozenPrefixHasNoBackwardAtAll) {
  EXPECT_EQ(picture(find_activity(chain(4), mask("0011"))), "FFWB");
}

TEST(Activity, FrozenBlocksInTheMiddlePassGradientsThrough) {
  EXPECT_EQ(picture(find_activity(chain(5), mask("01001"))), "FWIIB");
}

TEST(Activity, LayersWithoutParametersAreNeverActive) {
  ModelProfile profile = chain(4);
  profile.layers[0].parameters = Bytes{0};
  profile.layers[2].parameters = Bytes{0};
  EXPECT_EQ(picture(find_activity(profile, mask("1111"))), "FWIB");
}

TEST(Activity, NothingFlowsOverADetachedEdge) {
  // A teacher 0 -> 1 feeds a student 2 -> 3 block by block.
  ModelProfile profile = chain(4);
  profile.layers[2].has_loss = true;
  profile.edges = {edge(0, 1), edge(0, 2, EdgeKind::kDetached), edge(1, 3, EdgeKind::kDetached)};
  EXPECT_EQ(picture(find_activity(profile, mask("0011"))), "FFWW");
  // The teacher reaches no loss along gradient edges, so it learns nothing, frozen or not.
  EXPECT_EQ(picture(find_activity(profile, mask("1111"))), "FFWW");
}

TEST(Activity, BranchesThatReachNoLossHaveNoBackward) {
  ModelProfile profile = chain(4);
  profile.edges = {edge(0, 1), edge(0, 3), edge(1, 2)};
  const Activity activity = find_activity(profile, mask("1111"));
  EXPECT_EQ(picture(activity), "WFFB") << "no mask has left them idle";
  EXPECT_EQ(activity.edge_carries, (std::vector<bool>{false, true, false}));
}

// Blocks T S loss of a blockwise distillation, and the last loss in a block of its own.
TEST(Activity, LayersThatNoBackwardNeedsAreIdle) {
  ModelProfile profile = chain(9);
  profile.blocks = {"0", "1", "2", "end"};
  profile.edges.clear();
  for (const int b : {0, 1, 2}) {
    const int teacher = 3 * b;
    for (const int l : {teacher, teacher + 1, teacher + 2}) {
      profile.layers[static_cast<std::size_t>(l)].block = BlockId{b};
    }
    for (const int l : {teacher, teacher + 2}) {
      profile.layers[static_cast<std::size_t>(l)].parameters = Bytes{0};
    }
    profile.layers[static_cast<std::size_t>(teacher + 2)].has_loss = true;
    profile.edges.push_back(edge(teacher, teacher + 2, EdgeKind::kDetached));
    if (b < 2) profile.edges.push_back(edge(teacher, teacher + 3));
    if (b < 2) profile.edges.push_back(edge(teacher, teacher + 4, EdgeKind::kDetached));
    profile.edges.push_back(edge(teacher + 1, teacher + 2));
  }
  profile.layers.back().block = BlockId{3};
  const auto told = [&](const std::string& bits) {
    const Activity activity = find_activity(profile, mask(bits));
    return picture(activity) + " " + std::to_string(count_frozen_prefix(profile, activity));
  };
  EXPECT_EQ(told("1111"), "FWIFWIFWI 1");
  EXPECT_EQ(told("0111"), "F--FWIFWI 4") << "the second teacher block is fed by the first alone";
  EXPECT_EQ(told("1101"), "FWIFWI--- 1") << "nobody needs the last teacher block";
  EXPECT_EQ(told("1001"), "FWI------ 1");
  EXPECT_EQ(told("0011"), "F--F--FWI 7");
  EXPECT_EQ(told("0001"), "FFFFFFFFF 2") << "where nothing learns, all is run";
}

TEST(Activity, TiedParameterIsActiveWhereverOneOfItsBlocksIs) {
  ModelProfile profile = chain(4);
  profile.tied = {{"embedding", Bytes{1000}, {LayerId{0}, LayerId{3}}}};
  EXPECT_EQ(picture(find_activity(profile, mask("0001"))), "WIIB");
  profile.tied = {{"middle", Bytes{1000}, {LayerId{1}, LayerId{2}}}};
  EXPECT_EQ(picture(find_activity(profile, mask("0001"))), "FFFW");
}

// Not trainable is not frozen: the layer has no W and passes gradients, in training mode.
TEST(Activity, LayersWithoutTrainableParametersTrainWithoutAWeightGradient) {
  ModelProfile profile = chain(5);
  profile.layers[1].untrainable = profile.layers[1].parameters;
  profile.layers[2].untrainable = profile.layers[2].parameters - Bytes{1};
  profile.layers[3].untrainable = profile.layers[3].parameters;
  const Activity activity = find_activity(profile, mask("11101"));
  EXPECT_EQ(picture(activity), "WIBIB");
  std::string modes;
  for (const LayerActivity& layer : activity.layers) modes += layer.trains ? "t" : "e";
  EXPECT_EQ(modes, "tttet");
}

TEST(Activity, TiedParametersThatAreNotTrainableMakeNoLayerActive) {
  ModelProfile profile = chain(4);
  profile.tied = {{"embedding", Bytes{1000}, {LayerId{0}, LayerId{3}}, false}};
  EXPECT_EQ(picture(find_activity(profile, mask("0001"))), "FFFW");
  for (const int l : {0, 3}) {
    profile.layers[static_cast<std::size_t>(l)].untrainable =
        profile.layers[static_cast<std::size_t>(l)].parameters;
  }
  EXPECT_EQ(picture(find_activity(profile, mask("1111"))), "FWBI");
}

// Layers that do not train may be cached unless they draw, which only a frozen block ends.
TEST(Activity, PrefixesWithoutTrainableParametersAreCachedUnlessTheyVary) {
  ModelProfile profile = chain(5);
  for (int l = 0; l < 3; ++l) {
    profile.layers[static_cast<std::size_t>(l)].untrainable =
        profile.layers[static_cast<std::size_t>(l)].parameters;
  }
  const auto count = [&](const std::string& bits) {
    return count_frozen_prefix(profile, find_activity(profile, mask(bits)));
  };
  EXPECT_EQ(count("11111"), 3);
  EXPECT_EQ(count("00011"), 3);
  EXPECT_EQ(count("00001"), 4);
  profile.layers[1].varies_in_training = true;
  EXPECT_EQ(count("11111"), 1);
  EXPECT_EQ(count("10111"), 3);
  EXPECT_EQ(count("01111"), 1);
  profile.tied = {{"embedding", Bytes{1000}, {LayerId{0}, LayerId{4}}}};
  EXPECT_EQ(count("10111"), 0) << "the table trains";
}

TEST(Activity, StagesAskTheirLayers) {
  const Activity activity = find_activity(chain(5), mask("01001"));
  const auto stage = [](int first, int last) {
    return Stage{.layers = {{LayerId{first}, LayerId{last}}}, .devices = {DeviceId{0}}};
  };
  EXPECT_FALSE(stage_has_backward(stage(0, 0), activity));
  EXPECT_TRUE(stage_has_backward(stage(0, 1), activity));
  EXPECT_TRUE(stage_has_update(stage(0, 1), activity));
  EXPECT_TRUE(stage_has_backward(stage(2, 3), activity));
  EXPECT_FALSE(stage_has_update(stage(2, 3), activity));
}

// Reads the definitions as reachability and walks every path.
class PathOracle {
 public:
  PathOracle(const ModelProfile& profile, const FreezeMask& mask)
      : profile_(profile), mask_(mask) {}

  bool active(int layer) const {
    const Layer& entry = profile_.layers[static_cast<std::size_t>(layer)];
    if (entry.parameters > entry.untrainable && mask_.is_active(entry.block)) return true;
    for (const TiedParameter& tied : profile_.tied) {
      const auto uses = [&](auto&& holds) {
        return std::any_of(tied.layers.begin(), tied.layers.end(), holds);
      };
      const bool is_used = uses([&](LayerId use) { return use.value == layer; });
      const auto is_active = [&](LayerId use) {
        return mask_.is_active(profile_.layers[use.index()].block);
      };
      if (tied.trainable && is_used && uses(is_active)) return true;
    }
    return false;
  }
  bool trains(int layer) const {
    return active(layer) || mask_.is_active(profile_.layers[static_cast<std::size_t>(layer)].block);
  }
  // The layers that are the same in every epoch or idle, from the first on, as far as no later
  // layer reads an idle one.
  int prefix() const {
    int end = 0;
    while (end < layers() && (idle(end) || !works(end))) ++end;
    const auto reads_idle = [&](const Edge& e) {
      return e.from.value < end && e.to.value >= end && idle(e.from.value);
    };
    while (std::any_of(profile_.edges.begin(), profile_.edges.end(), reads_idle)) --end;
    return end;
  }
  bool idle(int layer) const {
    for (int any = 0; any < layers(); ++any) {
      if (backward(any)) return !needed(layer);
    }
    return false;
  }
  bool reaches_loss(int layer) const {
    if (profile_.layers[static_cast<std::size_t>(layer)].has_loss) return true;
    return std::any_of(profile_.edges.begin(), profile_.edges.end(), [&](const Edge& e) {
      return e.kind == EdgeKind::kGradient && e.from.value == layer && reaches_loss(e.to.value);
    });
  }
  bool active_upward(int layer) const {
    if (active(layer)) return true;
    return std::any_of(profile_.edges.begin(), profile_.edges.end(), [&](const Edge& e) {
      return e.kind == EdgeKind::kGradient && e.to.value == layer && active_upward(e.from.value);
    });
  }

 private:
  int layers() const { return static_cast<int>(profile_.layers.size()); }
  bool varies(int layer) const {
    return trains(layer) && profile_.layers[static_cast<std::size_t>(layer)].varies_in_training;
  }
  bool works(int layer) const {
    return profile_.layers[static_cast<std::size_t>(layer)].has_loss || active(layer) ||
           (reaches_loss(layer) && active_upward(layer)) || varies(layer);
  }
  bool backward(int layer) const {
    if (active(layer) && reaches_loss(layer)) return true;
    return std::any_of(profile_.edges.begin(), profile_.edges.end(), [&](const Edge& e) {
      return e.kind == EdgeKind::kGradient && e.to.value == layer && reaches_loss(layer) &&
             active_upward(e.from.value);
    });
  }
  bool is_read_by(int layer, const std::function<bool(int)>& works) const {
    if (works(layer)) return true;
    return std::any_of(profile_.edges.begin(), profile_.edges.end(), [&](const Edge& e) {
      return e.from.value == layer && is_read_by(e.to.value, works);
    });
  }
  bool needed(int layer) const {
    const FreezeMask all = FreezeMask::all_active(mask_.blocks());
    const PathOracle unfrozen(profile_, all);
    const auto works_unfrozen = [&](int l) { return unfrozen.backward(l) || unfrozen.varies(l); };
    return is_read_by(
        layer, [&](int l) { return backward(l) || varies(l) || !is_read_by(l, works_unfrozen); });
  }

  const ModelProfile& profile_;
  const FreezeMask& mask_;
};

TEST(Activity, AgreesWithAWalkOverAllPathsOfRandomModels) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const int layers = 2 + static_cast<int>(random() % 7);
    ModelProfile profile = chain(layers);
    profile.edges.clear();
    FreezeMask bits = FreezeMask::all_active(layers);
    for (int to = 0; to < layers; ++to) {
      Layer& layer = profile.layers[static_cast<std::size_t>(to)];
      if (random() % 4 == 0) layer.parameters = Bytes{0};
      if (random() % 3 == 0) layer.untrainable = Bytes{layer.parameters.count / (1 + to % 2)};
      if (random() % 2 == 0) layer.varies_in_training = true;
      if (random() % 4 == 0) layer.has_loss = true;
      if (to + 1 < layers && random() % 2 == 0) bits.set_active(BlockId{to}, false);
    }
    if (random() % 4 == 0) {
      const int first = static_cast<int>(random() % static_cast<unsigned>(layers - 1));
      profile.tied = {{"t", Bytes{8}, {LayerId{first}, LayerId{layers - 1}}, random() % 2 == 0}};
    }
    for (int from = 0; from < layers; ++from) {
      for (int to = from + 1; to < layers; ++to) {
        if (random() % 3 != 0) continue;
        profile.edges.push_back(
            edge(from, to, random() % 4 == 0 ? EdgeKind::kDetached : EdgeKind::kGradient));
      }
    }
    const PathOracle oracle(profile, bits);
    const Activity activity = find_activity(profile, bits);
    std::vector<bool> input_gradient(static_cast<std::size_t>(layers), false);
    for (std::size_t i = 0; i < profile.edges.size(); ++i) {
      const Edge& e = profile.edges[i];
      const bool carries = e.kind == EdgeKind::kGradient && oracle.reaches_loss(e.to.value) &&
                           oracle.active_upward(e.from.value);
      EXPECT_EQ(activity.edge_carries[i], carries) << "edge " << i;
      if (carries) input_gradient[e.to.index()] = true;
    }
    for (int layer = 0; layer < layers; ++layer) {
      const LayerActivity& found = activity.layers[static_cast<std::size_t>(layer)];
      EXPECT_EQ(found.active, oracle.active(layer)) << layer;
      EXPECT_EQ(found.input_gradient, input_gradient[static_cast<std::size_t>(layer)]) << layer;
      EXPECT_EQ(found.weight_gradient, oracle.active(layer) && oracle.reaches_loss(layer)) << layer;
      EXPECT_EQ(found.trains, oracle.trains(layer)) << layer;
      EXPECT_EQ(found.idle, oracle.idle(layer)) << layer;
    }
    EXPECT_EQ(count_frozen_prefix(profile, activity), oracle.prefix());
  }
}

}  // namespace
}  // namespace frazil
