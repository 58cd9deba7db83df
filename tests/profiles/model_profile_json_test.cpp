#include "profiles/model_profile_json.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <random>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/profiles/model_fixture.h"
#include "tests/support/golden.h"

namespace frazil {
namespace {

// Writes a model of one layer, whose only sample has the given members beside its size, F and
// stash.
std::string one_layer(const std::string& parameter_bytes, const std::string& backward,
                      const std::string& flag = "") {
  return R"({"format": "frazil.model", "version": 1, "model": "m", )" + flag +
         R"("blocks": ["b"], "layers": [{"name": "l", "block": 0, "has_loss": true,
            "parameter_bytes": )" +
         parameter_bytes +
         R"(, "costs": [{"micro_batch_size": 1, "forward_ns": 5, "stash_bytes": 6, )" + backward +
         R"(}]}], "edges": []})";
}

TEST(ModelProfileJson, LooksLikeThis) {
  EXPECT_TRUE(matches_golden("profiles/small.model.json", to_json(small_model())));
}

TEST(ModelProfileJson, RoundTrips) {
  const ModelProfile profile = small_model();
  const ModelProfile again = parse_model_profile(to_json(profile), "m.json");
  EXPECT_EQ(again, profile);
  EXPECT_EQ(to_json(again), to_json(profile));
}

TEST(ModelProfileJson, FillsInWhatIsLeftOut) {
  const ModelProfile profile = parse_model_profile(
      one_layer("8", R"("backward_input_ns": 1, "backward_weight_ns": 2)"), "m.json");
  EXPECT_EQ(profile.layers[0].optimizer_state, Bytes{0});
  EXPECT_EQ(profile.layers[0].update, Duration{0});
  EXPECT_EQ(profile.layers[0].costs[0].backward_weight_alone, Duration{2});
  EXPECT_EQ(profile.layers[0].costs[0].stash_frozen, std::nullopt);
  EXPECT_EQ(profile.layers[0].costs[0].kept(false), profile.layers[0].costs[0].stash);
  EXPECT_EQ(profile.input_bytes_per_sample, Bytes{0});
  EXPECT_FALSE(profile.backward_was_split_by_rule);
  EXPECT_TRUE(profile.tied.empty());
  EXPECT_TRUE(profile.provenance.empty());
}

TEST(ModelProfileJson, TellsWhatDoesNotTrainOnlyWhereThatIs) {
  ModelProfile profile = small_model();
  for (const char* const key : {"trainable", "varies"}) {
    EXPECT_EQ(to_json(profile).find(key), std::string::npos) << key;
  }
  profile.layers[1].untrainable = {1'500};
  profile.layers[1].varies_in_training = true;
  profile.tied[0].trainable = false;
  EXPECT_EQ(profile.layers[1].trainable(), Bytes{100});
  const std::string text = to_json(profile);
  EXPECT_NE(text.find(R"("parameter_bytes": 1600, "trainable_parameter_bytes": 100)"),
            std::string::npos);
  EXPECT_EQ(parse_model_profile(text, "m.json"), profile);
}

TEST(ModelProfileJson, KeepsThePrecision) {
  ModelProfile profile = small_model();
  EXPECT_EQ(to_json(profile).find("precision"), std::string::npos);
  const std::string in_fp32 = model_hash(profile);
  profile.precision = Precision::kBf16;
  EXPECT_EQ(parse_model_profile(to_json(profile), "m.json"), profile);
  EXPECT_NE(model_hash(profile), in_fp32);
  EXPECT_THROW((void)parse_model_profile(
                   one_layer("8", R"("backward_ns": 7)", R"("precision": "fp16", )"), "m.json"),
               InputError);
}

TEST(ModelProfileJson, SplitsAWholeBackwardByTheStatedRule) {
  const ModelProfile trained = parse_model_profile(one_layer("8", R"("backward_ns": 7)"), "m.json");
  const CostSample& split = trained.layers[0].costs[0];
  EXPECT_EQ(split.backward_input, Duration{0});
  EXPECT_EQ(split.backward_weight, Duration{7});
  EXPECT_EQ(split.backward_weight_alone, Duration{7});
  EXPECT_TRUE(trained.backward_was_split_by_rule);

  const ModelProfile without = parse_model_profile(one_layer("0", R"("backward_ns": 7)"), "m.json");
  const CostSample& whole = without.layers[0].costs[0];
  EXPECT_EQ(whole.backward_input, Duration{7});
  EXPECT_EQ(whole.backward_weight, Duration{0});
  EXPECT_EQ(whole.backward_weight_alone, Duration{0});
}

TEST(ModelProfileJson, KeepsTheFlagOfASplitBackward) {
  const ModelProfile split = parse_model_profile(
      one_layer("8", R"("backward_ns": 7)", R"("backward_was_split_by_rule": false, )"), "m.json");
  EXPECT_TRUE(split.backward_was_split_by_rule);
  EXPECT_EQ(parse_model_profile(to_json(split), "m.json"), split);
}

TEST(ModelProfileJson, TakesEdgesInAnyOrder) {
  ModelProfile shuffled = small_model();
  std::swap(shuffled.edges[0], shuffled.edges[2]);
  EXPECT_EQ(parse_model_profile(to_json(shuffled), "m.json"), small_model());
}

ModelProfile random_profile(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  const auto any = [&] { return below(kLargestQuantity + 1); };
  ModelProfile profile;
  profile.model = "m\"\\\n\xc3\xa4" + std::to_string(seed);
  const auto layers = static_cast<std::int32_t>(1 + below(12));
  for (std::int32_t i = 0; i < layers; ++i) {
    if (i == 0 || below(2) == 0) profile.blocks.push_back("b" + std::to_string(i));
    Layer layer;
    layer.name = "layer \t" + std::to_string(i);
    layer.block = BlockId(profile.blocks.size() - 1);
    layer.has_loss = i + 1 == layers || below(4) == 0;
    layer.parameters = {below(3) == 0 ? 0 : any()};
    if (below(2) == 0) layer.untrainable = {below(layer.parameters.count + 1)};
    layer.varies_in_training = below(2) == 0;
    layer.optimizer_state = {any()};
    layer.update = Duration{any()};
    std::int64_t size = 0;
    for (std::int64_t count = 1 + below(3); count > 0; --count) {
      size += 1 + below(700'000'000);
      layer.costs.push_back({static_cast<int>(size),
                             Duration{any()},
                             Duration{any()},
                             Duration{any()},
                             Duration{any()},
                             Duration{any()},
                             {any()}});
    }
    profile.layers.push_back(layer);
  }
  for (std::int32_t from = 0; from < layers; ++from) {
    for (std::int32_t to = from + 1; to < layers; ++to) {
      if (below(3) != 0) continue;
      Edge edge{LayerId(from),
                LayerId(to),
                below(2) == 0 ? EdgeKind::kGradient : EdgeKind::kDetached,
                {{any()}}};
      if (below(2) == 0) edge.tensor_bytes_per_sample.push_back({any()});
      profile.edges.push_back(edge);
    }
  }
  if (layers > 1) {
    profile.tied = {{"t", {any()}, {LayerId(0), LayerId(layers - 1)}, below(2) == 0}};
  }
  profile.input_bytes_per_sample = {any()};
  profile.backward_was_split_by_rule = below(2) == 0;
  for (const DoubtedFact fact : kDoubtedFacts) {
    if (below(3) > 0) continue;
    profile.doubts.push_back({fact, kDoubtKinds[static_cast<std::size_t>(below(4))], "why \""});
  }
  if (below(2) == 0) profile.provenance = {{"a \"key\"", "text\n"}, {"b", ""}};
  return profile;
}

TEST(ModelProfileJson, KeepsItsDoubtsInTheOrderOfFacts) {
  const std::string text = one_layer(
      "8", R"("backward_ns": 7)",
      R"("doubts": [{"fact": "stash_bytes", "kind": "lower-bound", "reason": "its \"input\""},
                    {"fact": "optimizer_state_bytes", "kind": "default", "reason": "none"}], )");
  const ModelProfile profile = parse_model_profile(text, "m.json");
  const std::vector<Doubt> doubts = {
      {DoubtedFact::kOptimizerState, DoubtKind::kDefault, "none"},
      {DoubtedFact::kStash, DoubtKind::kLowerBound, "its \"input\""}};
  EXPECT_EQ(profile.doubts, doubts);
  EXPECT_EQ(parse_model_profile(to_json(profile), "m.json"), profile);
  EXPECT_EQ(memory_condition(doubts),
            "optimizer state and saved activations take no more than the profile says");
}

TEST(ModelProfileJson, RandomProfilesRoundTripToTheByte) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const ModelProfile profile = random_profile(seed);
    ASSERT_NO_THROW(validate(profile, "m.json"));
    const std::string text = to_json(profile);
    const ModelProfile again = parse_model_profile(text, "m.json");
    ASSERT_EQ(again, profile);
    ASSERT_EQ(to_json(again), text);
    ASSERT_EQ(model_hash(again), model_hash(profile));
  }
}

TEST(ModelProfileJson, WritesAndReadsFiles) {
  std::string pattern = (std::filesystem::temp_directory_path() / "frazil-model-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path path = std::filesystem::path(pattern) / "m.json";
  write_model_profile(small_model(), path);
  EXPECT_EQ(read_model_profile(path), small_model());
  ModelProfile broken = small_model();
  broken.edges[0].to = LayerId(9);
  EXPECT_THROW(write_model_profile(broken, path), InputError);
  broken = small_model();
  broken.model = "not UTF-8: \xff";
  EXPECT_THROW(write_model_profile(broken, path), InputError);
  EXPECT_EQ(read_model_profile(path), small_model());
  std::filesystem::remove_all(pattern);
}

TEST(ModelProfileJson, KeepsAMaskThatGoesOverAnEdgeOfItsOwn) {
  ModelProfile profile = small_model();
  Edge mask = profile.edges[0];
  ASSERT_EQ(mask.kind, EdgeKind::kGradient);
  mask.kind = EdgeKind::kDetached;
  mask.tensor_bytes_per_sample = {Bytes{8}};
  profile.edges.insert(profile.edges.begin() + 1, mask);
  validate(profile, "model.json");
  EXPECT_EQ(parse_model_profile(to_json(profile), "model.json"), profile);
  std::swap(profile.edges[0], profile.edges[1]);
  EXPECT_THROW(validate(profile, "model.json"), InputError);
}

}  // namespace
}  // namespace frazil
