// Tests the reading of Sailor's files: small ones by hand, damaged ones, and the measured ones if
// they are at hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "profiles/error.h"
#include "profiles/import/sailor_folder.h"
#include "profiles/model_profile_json.h"
#include "tests/support/sailor_data.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// The keys stand in no order, as in the measured files.
constexpr const char* kTimes = R"({"8": {"2": {"1": [0.000002, 0.000004, 0.0000005],
          "0": [0.001207, 2e-06, 0.000765]}},
 "1": {"2": {"0": [0.000455, 2e-06, 0.000762], "1": [0.0074789999999999995, 0.010053, 0.000001]}}})";

constexpr const char* kSizes = R"({"tiny": {"2": {
  "1": {"params_floats": 25, "act_output_floats": 5, "act_input_floats": 5, "act_mem_floats": 50,
        "params_bytes": 100, "act_output_bytes": 20, "act_input_bytes": 24, "act_mem_bytes": 200},
  "0": {"params_bytes": 40, "act_output_bytes": 24, "act_input_bytes": 16, "act_mem_bytes": 8}}}})";

constexpr const char* kConfig =
    R"({"model": "tiny", "num_all_layers": 2, "optimizer": "Adam", "heads": 16})";

constexpr const char* kLinks = R"({
 "intra": {"G": {"2": [[1, 10], 9e9]}},
 "inter": {"G": {"4": [[-0.5, 4, 20], 30000000000.0], "1": [[2, 5], 8.5e9]}}})";

constexpr const char* kPlan = R"({
 "zone": "z", "mbs": 2, "gbs": 24, "real": 1.25, "red_grads": 0.1, "max_mem": 5000, "N": 4,
 "pipeline_list": [
  {"num_stages": 2, "layers_per_stage": [[0, 1], [2]],
   "tmp_per_stage": [[[[["G", 4, "z"]], 2], [[["G", 4, "z"]], 2]],
                     [[[["G", 4, "z"]], 2], [[["G", 4, "z"]], 2]]],
   "dp": [2, 2]}]})";

struct Damage {
  std::string name;
  std::string before;
  std::string after;
  int line;
  std::string found;
  std::string expected;
};

// Checks that `whole` is read and that each damaged text, where the first `before` has become
// `after`, is refused in the expected words.
void expect_refusals(const std::string& whole, const std::vector<Damage>& damages,
                     const std::function<void(const std::string&)>& read) {
  ASSERT_NO_THROW(read(whole));
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.name);
    std::string text = whole;
    const std::size_t place = text.find(damage.before);
    ASSERT_NE(place, std::string::npos) << damage.before;
    text.replace(place, damage.before.size(), damage.after);
    try {
      read(text);
      ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "bad.json");
      EXPECT_EQ(error.line(), damage.line);
      EXPECT_EQ(error.found(), damage.found);
      EXPECT_EQ(error.expected(), damage.expected);
    }
  }
}

TEST(SailorTimes, AreRowsByDegreeThenSizeInWholeNanoseconds) {
  const SailorTimes times = parse_sailor_times(kTimes, "t");
  ASSERT_EQ(times.size(), 1U);
  ASSERT_EQ(times.at(2).size(), 2U);
  const std::vector<SailorLayerTimes> small = times.at(2).at(1);
  ASSERT_EQ(small.size(), 2U);
  EXPECT_EQ(small[0], (SailorLayerTimes{microseconds(455), microseconds(2), microseconds(762)}));
  EXPECT_EQ(small[1], (SailorLayerTimes{microseconds(7479), microseconds(10053), microseconds(1)}));
  EXPECT_EQ(times.at(2).at(8)[1].update, nanoseconds(500));
}

TEST(SailorTimes, AreFoundBelowModelAndGpu) {
  const std::string text = std::string(R"({"other": {}, "tiny": {"H": {}, "G": )") + kTimes + "}}";
  EXPECT_EQ(parse_sailor_times(text, "t", "tiny", "G"), parse_sailor_times(kTimes, "t"));
  EXPECT_THROW(parse_sailor_times(text, "t", "tiny", "A"), InputError);
  EXPECT_THROW(parse_sailor_times(text, "t", "big", "G"), InputError);
}

TEST(SailorTimes, ThatAreBadAreRefusedInASentence) {
  const std::string three = "forward, backward and update";
  const std::string seconds = "a number from 0 to 1000000";
  expect_refusals(
      kTimes,
      {
          {"a size that is no number", R"("8": {)", R"("eight": {)", 1,
           "a key that is no number at $.eight", "a micro-batch size from 1 to 1000000"},
          {"a size twice in disguise", R"("8": {)", R"("01": {)", 1,
           "a key that is no number at $.01", "a micro-batch size from 1 to 1000000"},
          {"no samples", R"("8": {)", R"("0": {)", 1, "a key that is no number at $.0",
           "a micro-batch size from 1 to 1000000"},
          {"too many samples", R"("8": {)", R"("99999999999": {)", 1,
           "a key that is no number at $.99999999999", "a micro-batch size from 1 to 1000000"},
          {"a negative degree", R"("2": {)", R"("-2": {)", 1,
           "a key that is no number at $.8[\"-2\"]",
           "a degree of tensor parallelism from 1 to 1000000"},
          {"a size twice", R"( "1": {"2")", R"( "8": {"2")", 3, "the key \"8\" again",
           "it once (first on line 1)"},
          {"a gap in the layers", R"("1": [0.000002)", R"("2": [0.000002)", 1,
           "layer 2 but no layer 1 at $.8.2", "layers without a gap"},
          {"a row with fewer layers", R"(, "1": [0.0074789999999999995, 0.010053, 0.000001])", "",
           3, "1 layers at $.1.2", "2, as in the rows before"},
          {"two times", "0.000002, 0.000004, 0.0000005", "0.000002, 0.000004", 1,
           "2 times at $.8.2.1", three},
          {"four times", "0.0000005]", "0.0000005, 1]", 1, "4 times at $.8.2.1", three},
          {"a negative time", "0.000004", "-0.000004", 1, "`-0.000004` at $.8.2.1[1]", seconds},
          {"a time of years", "0.000004", "1e9", 1, "`1e9` at $.8.2.1[1]", seconds},
          {"a time in words", "0.000004", "\"4us\"", 1, "`\"4us\"` at $.8.2.1[1]", seconds},
          {"a row that is a list", R"({"1": [0.000002, 0.000004, 0.0000005],
          "0": [0.001207, 2e-06, 0.000765]})",
           "[]", 1, "an array at $.8.2", "an object"},
          {"no layer",
           R"({"0": [0.000455, 2e-06, 0.000762], "1": [0.0074789999999999995, )"
           R"(0.010053, 0.000001]})",
           "{}", 3, "an empty object at $.1.2", "at least a layer"},
      },
      [](const std::string& text) { parse_sailor_times(text, "bad.json"); });
}

TEST(SailorSizes, AreBytesByDegreeAndLayer) {
  const SailorSizes sizes = parse_sailor_sizes(kSizes, "s", "tiny");
  ASSERT_EQ(sizes.size(), 1U);
  EXPECT_EQ(sizes.at(2),
            (std::vector<SailorLayerSizes>{{Bytes{40}, Bytes{24}, Bytes{16}, Bytes{8}},
                                           {Bytes{100}, Bytes{20}, Bytes{24}, Bytes{200}}}));
}

TEST(SailorSizes, ThatAreBadAreRefusedInASentence) {
  const std::string bytes = "an integer from 0 to 9007199254740992";
  expect_refusals(
      kSizes,
      {
          {"another model", "\"tiny\"", "\"huge\"", 1, "an object without \"tiny\" at $",
           "the key \"tiny\""},
          {"no parameters", "\"params_bytes\": 100, ", "", 2,
           "an object without \"params_bytes\" at $.tiny.2.1", "the key \"params_bytes\""},
          {"negative", ": 40", ": -40", 4, "`-40` at $.tiny.2.0.params_bytes", bytes},
          {"half a byte", ": 40", ": 40.5", 4, "`40.5` at $.tiny.2.0.params_bytes", bytes},
          {"another key", "\"act_mem_bytes\": 8", "\"act_mem_bytes\": 8, \"x\": 1", 4,
           "the unknown key \"x\" at $.tiny.2.0",
           "no keys but \"params_floats\", \"params_bytes\", \"act_output_floats\", "
           "\"act_output_bytes\", \"act_input_floats\", \"act_input_bytes\", \"act_mem_floats\", "
           "\"act_mem_bytes\""},
      },
      [](const std::string& text) { parse_sailor_sizes(text, "bad.json", "tiny"); });
}

ModelProfile make_tiny() {
  return make_sailor_profile(parse_sailor_config(kConfig, "c"), parse_sailor_times(kTimes, "t"),
                             parse_sailor_sizes(kSizes, "s", "tiny"), 2, "tiny");
}

TEST(SailorProfile, IsAChainWithTheBackwardSplitByRule) {
  const ModelProfile profile = make_tiny();
  EXPECT_EQ(profile.model, "tiny");
  EXPECT_TRUE(profile.backward_was_split_by_rule);
  EXPECT_EQ(profile.input_bytes_per_sample, Bytes{16});
  ASSERT_EQ(profile.layers.size(), 2U);
  EXPECT_EQ(profile.blocks, (std::vector<std::string>{"layer.0", "layer.1"}));
  const Layer& head = profile.layers[1];
  EXPECT_TRUE(head.has_loss);
  EXPECT_FALSE(profile.layers[0].has_loss);
  EXPECT_EQ(head.parameters, Bytes{100});
  EXPECT_EQ(head.optimizer_state, Bytes{200});
  EXPECT_EQ(head.update, nanoseconds(500)) << "the lower of two updates, 500 ns and 1 us";
  ASSERT_EQ(head.costs.size(), 2U);
  EXPECT_EQ(head.costs[0].micro_batch_size, 1);
  EXPECT_EQ(head.costs[0].forward, microseconds(7479));
  EXPECT_EQ(head.costs[0].backward_input, nanoseconds(5'026'500));
  EXPECT_EQ(head.costs[0].backward_weight, nanoseconds(5'026'500));
  EXPECT_EQ(head.costs[1].micro_batch_size, 8);
  EXPECT_EQ(head.costs[1].stash, Bytes{1600});
  EXPECT_EQ(profile.edges, (std::vector<Edge>{{.from = LayerId{0},
                                               .to = LayerId{1},
                                               .kind = EdgeKind::kGradient,
                                               .tensor_bytes_per_sample = {Bytes{24}}}}));
  EXPECT_EQ(parse_model_profile(to_json(profile), "again"), profile);
}

TEST(SailorProfile, OfWhatDoesNotFitTogetherIsRefused) {
  const SailorConfig config = parse_sailor_config(kConfig, "c");
  const SailorTimes times = parse_sailor_times(kTimes, "t");
  const SailorSizes sizes = parse_sailor_sizes(kSizes, "s", "tiny");
  const auto refusal = [&](const SailorConfig& of, int degree, const SailorSizes& with) {
    try {
      make_sailor_profile(of, times, with, degree, "folder");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(refusal(config, 4, sizes),
            "folder: found no times of tensor parallelism 4, expected a measured degree");
  EXPECT_EQ(refusal(config, 2, {}),
            "folder: found no sizes of tensor parallelism 2, expected a measured degree");
  EXPECT_EQ(refusal({"tiny", 3, "Adam"}, 2, sizes),
            "folder: found times of 2 layers and sizes of 2, expected the 3 layers of the "
            "configuration");
  EXPECT_EQ(refusal({"tiny", 2, "sgd"}, 2, sizes),
            "folder: found optimizer \"sgd\", expected \"Adam\", whose state has a known size");
  SailorSizes large = sizes;
  large.at(2)[0].stash = Bytes{kLargestQuantity / 4};
  EXPECT_EQ(refusal(config, 2, large),
            "folder: found a stash of 8 samples of 2251799813685248 bytes, expected at most "
            "9007199254740992 bytes");
}

TEST(SailorLinks, GiveABandwidthByTheSizeOfTheMessage) {
  const SailorLinks links = parse_sailor_links(kLinks, "l", "G");
  ASSERT_EQ(links.between_nodes.size(), 2U);
  const BandwidthFit& four = links.between_nodes.at(4);
  // The fits give 8 MB: -0.5 x 9 + 4 x 3 + 20 = 27.5 GB/s, and 64 MB: -18 + 24 + 20 = 26 GB/s.
  EXPECT_EQ(bandwidth_at(four, Bytes{8'000'000}), BytesPerSecond{27'500'000'000});
  EXPECT_EQ(bandwidth_at(four, Bytes{64'000'000}), BytesPerSecond{26'000'000'000});
  // The fit gives 4 MB: 2 x 2 + 5 = 9 GB/s, more than was ever measured.
  EXPECT_EQ(bandwidth_at(links.between_nodes.at(1), Bytes{4'000'000}),
            BytesPerSecond{8'500'000'000});
  EXPECT_THROW(bandwidth_at(four, Bytes{0}), InputError);
  EXPECT_THROW(bandwidth_at(four, Bytes{100}), InputError) << "the parabola is below zero here";
}

TEST(SailorLinks, ThatAreBadAreRefusedInASentence) {
  expect_refusals(
      kLinks,
      {
          {"another GPU", R"("intra": {"G")", R"("intra": {"H")", 2,
           "an object without \"G\" at $.intra", "the key \"G\""},
          {"no largest", "[[1, 10], 9e9]", "[[1, 10]]", 2, "1 values at $.intra.G.2",
           "coefficients and a largest bandwidth"},
          {"no coefficients", "[[1, 10], 9e9]", "[[], 9e9]", 2, "0 coefficients at $.intra.G.2[0]",
           "1 to 16"},
          {"no bandwidth", "9e9", "0", 2, "`0` at $.intra.G.2[1]",
           "a number from 1 to 1000000000000000"},
          {"senders by name", R"({"2": [[1)", R"({"two": [[1)", 2,
           "a key that is no number at $.intra.G.two", "a number of GPUs from 1 to 1000000"},
      },
      [](const std::string& text) { parse_sailor_links(text, "bad.json", "G"); });
}

TEST(SailorPlan, HasStagesReplicasBatchAndWhatWasMeasured) {
  const SailorPlan plan = parse_sailor_plan(kPlan, "folder/plan_x.json");
  EXPECT_EQ(plan.name, "plan_x");
  EXPECT_EQ(plan.stages,
            (std::vector<std::vector<LayerId>>{{LayerId{0}, LayerId{1}}, {LayerId{2}}}));
  EXPECT_EQ(plan.layers(), 3);
  EXPECT_EQ(plan.replicas, 2);
  EXPECT_EQ(plan.degree, 2);
  EXPECT_EQ(plan.gpu, "G");
  EXPECT_EQ(plan.micro_batches_per_replica(), 6);
  EXPECT_EQ(plan.iteration, std::chrono::milliseconds(1250));
  EXPECT_EQ(plan.reduction, std::chrono::milliseconds(100));
  EXPECT_EQ(plan.peak_memory, Bytes{5000});
}

TEST(SailorPlan, ThatIsBadIsRefusedInASentence) {
  expect_refusals(
      kPlan,
      {
          {"a layer left out", "[[0, 1], [2]]", "[[0, 1], [3]]", 4,
           "layer `3` at $.pipeline_list[0].layers_per_stage[1][0]",
           "layer 2, for stages hold consecutive layers"},
          {"a layer twice", "[[0, 1], [2]]", "[[0, 1], [1]]", 4,
           "layer `1` at $.pipeline_list[0].layers_per_stage[1][0]",
           "layer 2, for stages hold consecutive layers"},
          {"a layer in words", "[[0, 1], [2]]", "[[0, \"1\"], [2]]", 4,
           "`\"1\"` at $.pipeline_list[0].layers_per_stage[0][1]", "an integer from 0 to 1000000"},
          {"a stage without layers", "[[0, 1], [2]]", "[[0, 1], []]", 4,
           "a stage without layers at $.pipeline_list[0].layers_per_stage[1]", "at least one"},
          {"other stages", "\"num_stages\": 2", "\"num_stages\": 3", 4,
           "`3` at $.pipeline_list[0].num_stages", "2, the stages that have layers"},
          {"replicas of one stage", "[[0, 1], [2]]", "[[0, 1, 2]]", 4,
           "`2` at $.pipeline_list[0].num_stages", "1, the stages that have layers"},
          {"unequal replicas", R"(                     [[[["G", 4, "z"]], 2], )",
           "                     [", 6, "1 replicas at $.pipeline_list[0].tmp_per_stage[1]",
           "2, as of the stages before"},
          {"unequal degrees", R"("z"]], 2], [[["G", 4, "z"]], 2]],
)",
           R"("z"]], 2], [[["G", 4, "z"]], 4]],
)",
           5, "GPU G with tensor parallelism 4 at $.pipeline_list[0].tmp_per_stage[0][1]",
           "G with 2, as before: a profile holds one"},
          {"unequal GPUs", R"("z"]], 2], [[["G")", R"("z"]], 2], [[["H")", 5,
           "GPU H with tensor parallelism 2 at $.pipeline_list[0].tmp_per_stage[0][1]",
           "G with 2, as before: a profile holds one"},
          {"a replica without machines", R"([[["G", 4, "z"]], 2])", "[[], 2]", 5,
           "a replica without machines at $.pipeline_list[0].tmp_per_stage[0][0][0]",
           "at least one"},
          {"other replicas", R"("dp": [2, 2])", R"("dp": [2, 1])", 7,
           "`1` at $.pipeline_list[0].dp[1]", "2, the replicas of the stage"},
          {"a batch that does not divide", "\"gbs\": 24", "\"gbs\": 26", 2, "`26` at $.gbs",
           "a multiple of 4, a micro-batch of 2 in each of 2 replicas"},
          {"no samples", "\"mbs\": 2", "\"mbs\": 0", 2, "`0` at $.mbs",
           "an integer from 1 to 1000000"},
          {"no time", "\"real\": 1.25", "\"real\": 0", 2, "`0` at $.real",
           "a measured time above zero"},
          {"a part above the whole", "\"red_grads\": 0.1", "\"red_grads\": 1.3", 2,
           "`1.3` at $.red_grads", "at most the iteration that it is a part of"},
          {"an unknown key", "\"N\": 4", "\"M\": 4", 2, "the unknown key \"M\" at $",
           "no keys but \"pipeline_list\", \"gbs\", \"mbs\", \"real\", \"red_grads\", \"max_mem\", "
           "\"zone\", \"N\""},
      },
      [](const std::string& text) { parse_sailor_plan(text, "bad.json"); });
}

TEST(SailorPlan, WithOtherLayersThanTheProfileIsRefused) {
  const SailorPlan plan = parse_sailor_plan(kPlan, "p");
  EXPECT_NO_THROW(refuse_other_layers(plan, 3, "p"));
  EXPECT_THROW(refuse_other_layers(plan, 2, "p"), InputError);
  EXPECT_THROW(refuse_other_layers(plan, 4, "p"), InputError);
}

TEST(SailorPlan, ValuesThatLookCopiedAreNamed) {
  SailorPlan plan = parse_sailor_plan(kPlan, "a.json");
  std::vector<SailorPlan> plans(3, plan);
  const char* const names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) {
    plans[static_cast<std::size_t>(i)].name = names[i];
    plans[static_cast<std::size_t>(i)].peak_memory = Bytes{1000 + i};
  }
  EXPECT_TRUE(find_suspect_values(plans).empty());
  plans[1].reduction = std::chrono::milliseconds(700);
  EXPECT_EQ(find_suspect_values(plans),
            (std::vector<std::string>{"b: red_grads of 700.000 ms in an iteration of 1.250 s"}));
  plans[2].peak_memory = plans[0].peak_memory;
  EXPECT_EQ(find_suspect_values(plans).back(), "c: time and memory of a");
}

class SailorFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_sailor_data()) GTEST_SKIP() << "no measurements of Sailor in " << sailor_data();
  }
};

TEST_F(SailorFolderTest, HoldsWhatWasMeasured) {
  const SailorFolder folder = read_sailor_folder(sailor_data());
  EXPECT_EQ(folder.gpu, "GH-96");
  EXPECT_EQ(folder.config, (SailorConfig{"OPT-350", 26, "Adam"}));
  ASSERT_EQ(folder.plans.size(), 15U);
  const SailorLayerTimes& layer = folder.times.at(4).at(8)[2];
  EXPECT_EQ(layer, (SailorLayerTimes{microseconds(2683), microseconds(6470), microseconds(479)}));
  EXPECT_EQ(folder.times.at(4).size(), 8U) << "micro-batches of 1 to 128";
  EXPECT_EQ(folder.sizes.at(4)[1].parameters, Bytes{12'614'656});
  EXPECT_EQ(folder.links.between_nodes.at(1).coefficients.size(), 3U);
  for (const SailorPlan& plan : folder.plans) {
    SCOPED_TRACE(plan.name);
    EXPECT_EQ(plan.degree, 4);
    EXPECT_EQ(plan.layers(), 26);
    ASSERT_TRUE(plan.iteration);
  }
  const auto plan = std::find_if(folder.plans.begin(), folder.plans.end(), [](const auto& each) {
    return each.name == "plan_config_N32_D8";
  });
  ASSERT_NE(plan, folder.plans.end());
  EXPECT_EQ(plan->iteration, microseconds(1'474'850));
  EXPECT_EQ(plan->reduction, microseconds(40'850));
  EXPECT_EQ(plan->peak_memory, Bytes{25'218'252'800});
  EXPECT_EQ(plan->stages.size(), 4U);
  EXPECT_EQ(plan->stages[0].size(), 5U);
  EXPECT_EQ(plan->replicas, 8);
  EXPECT_EQ(plan->micro_batches_per_replica(), 16);
}

TEST_F(SailorFolderTest, NamesTheReductionThatLooksCopied) {
  EXPECT_EQ(find_suspect_values(read_sailor_folder(sailor_data()).plans),
            (std::vector<std::string>{
                "plan_config_N4_D4: red_grads of 1.061 s in an iteration of 1.235 s"}));
}

TEST_F(SailorFolderTest, MakesAProfileOfEachDegreeThatIsReadBack) {
  const SailorFolder folder = read_sailor_folder(sailor_data());
  for (const int degree : {1, 2, 4}) {
    SCOPED_TRACE(degree);
    const ModelProfile profile =
        make_sailor_profile(folder.config, folder.times, folder.sizes, degree, "data");
    EXPECT_EQ(profile.layers.size(), 26U);
    EXPECT_EQ(parse_model_profile(to_json(profile), "again"), profile);
  }
  EXPECT_THROW(make_sailor_profile(folder.config, folder.times, folder.sizes, 8, "data"),
               InputError)
      << "sizes of 8, but no times";
}

}  // namespace
}  // namespace frazil
