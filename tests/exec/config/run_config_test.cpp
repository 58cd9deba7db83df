#include "exec/config/run_config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <random>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeader = R"({"format": "frazil.run", "version": 1)";

// Puts the members on line 2 of a configuration, where errors are expected.
std::string with_members(const std::string& members) {
  return std::string(kHeader) + ",\n" + members + "}";
}

RunConfig parse(const std::string& text) { return parse_run_config(text, "run.json"); }

TEST(RunConfig, HasADefaultForEverything) {
  EXPECT_EQ(parse(std::string(kHeader) + "}"), RunConfig{});
}

TEST(RunConfig, ReadsEveryKey) {
  const RunConfig config = parse(R"({
    "format": "frazil.run", "version": 1,
    "model": {"image": 32, "channels": 3, "patch": 4, "dim": 96, "blocks": 12, "heads": 3,
              "classes": 100, "dropout": 0.1},
    "data": {"kind": "synthetic", "train_samples": 1000, "test_samples": 10, "seed": 5,
             "validation_percent": 90},
    "optimizer": {"kind": "sgd", "learning_rate": 0.1, "weight_decay": 0, "momentum": 0.5,
                  "cosine": false, "warm_up_steps": 1000000000, "clip_norm": 1.5},
    "epochs": 7, "evaluation_epochs": 3, "batch_size": 40, "batch_growth": "with-pipelines",
    "micro_batch_size": 10, "seed": 9007199254740992, "replan": "greedy",
    "freeze": {"alpha": 0.333333, "start_epoch": 11, "interval_epochs": 2},
    "reduction": "fast", "message_order": "as-sent", "deadline_seconds": 2.5})");
  const RunConfig expected{
      .model = VitConfig{.image = 32,
                         .channels = 3,
                         .patch = 4,
                         .dim = 96,
                         .blocks = 12,
                         .heads = 3,
                         .classes = 100,
                         .dropout = 0.1},
      .data = {.kind = DataConfig::Kind::kSynthetic,
               .path = "",
               .train_samples = 1000,
               .test_samples = 10,
               .seed = 5,
               .validation_percent = 90},
      .optimizer = {.kind = OptimizerConfig::Kind::kSgd,
                    .learning_rate = 0.1,
                    .weight_decay = 0,
                    .momentum = 0.5,
                    .schedule = RateSchedule::kConstant,
                    .warm_up_steps = 1'000'000'000,
                    .clip_norm = 1.5},
      .epochs = 7,
      .evaluation_epochs = 3,
      .batch_size = 40,
      .batch_growth = BatchGrowth::kWithPipelines,
      .micro_batch_size = 10,
      .seed = 9007199254740992,
      .replan = Replanning::kGreedy,
      .freeze = {AlphaFreeze{
                     .alpha = 0.333333, .start = 10, .interval = 2, .unit = PaceUnit::kEpochs},
                 {}},
      .reduction = ReductionMode::kFast,
      .message_order = MessageOrder::kAsSent,
      .deadline_seconds = 2.5};
  EXPECT_EQ(config, expected);
  EXPECT_EQ(parse(to_json(expected)), expected);
}

TEST(RunConfig, ReadsAModelOfAnotherKind) {
  const RunConfig config = parse(with_members(
      R"("model": {"kind": "decoder", "tokens": 9, "expansion": 2},
      "data": {"kind": "synthetic"})"));
  EXPECT_EQ(config.model, ModelChoice(DecoderConfig{.tokens = 9, .expansion = 2}));
  EXPECT_NE(to_json(config).find(R"("model": {"kind": "decoder", "vocabulary": 64, )"),
            std::string::npos);
  EXPECT_EQ(parse(to_json(config)), config);
}

TEST(RunConfig, ReadsAGrammar) {
  const RunConfig config = parse(with_members(
      R"("model": {"image": 4, "channels": 5, "patch": 1, "classes": 6},
      "data": {"kind": "random-hierarchy", "levels": 2, "symbols": 5, "synonyms": 3,
               "branching": 3, "train_samples": 90, "test_samples": 30, "seed": 7,
               "validation_percent": 10})"));
  const DataConfig expected{.kind = DataConfig::Kind::kRandomHierarchy,
                            .path = "",
                            .train_samples = 90,
                            .test_samples = 30,
                            .seed = 7,
                            .hierarchy = {.levels = 2, .symbols = 5, .synonyms = 3, .branching = 3},
                            .validation_percent = 10};
  EXPECT_EQ(config.data, expected);
  EXPECT_EQ(parse(to_json(config)), config);
}

TEST(RunConfig, TakesBf16InModeFastAlone) {
  const RunConfig config = parse(with_members(R"("precision": "bf16", "reduction": "fast")"));
  EXPECT_EQ(config.precision, Precision::kBf16);
  EXPECT_EQ(parse(to_json(config)), config);
  for (const std::string members :
       {R"("precision": "bf16")", R"("reduction": "exact", "precision": "bf16")"}) {
    try {
      (void)parse(with_members(members));
      ADD_FAILURE() << members;
    } catch (const InputError& error) {
      EXPECT_EQ(error.line(), 2);
      EXPECT_EQ(error.found(), R"("bf16" beside "reduction": "exact" at $.precision)");
      EXPECT_EQ(error.expected(), R"("fp32", or "reduction": "fast")");
    }
  }
  EXPECT_THROW((void)parse(with_members(R"("precision": "fp16", "reduction": "fast")")),
               InputError);
}

TEST(RunConfig, IsWrittenWithItsDefaults) {
  EXPECT_EQ(to_json(RunConfig{}),
            R"({
  "format": "frazil.run",
  "version": 1,
  "model": {"image": 8, "channels": 1, "patch": 2, "dim": 64, "blocks": 6, "heads": 4, )"
            R"("classes": 10, "dropout": 0},
  "data": {"kind": "digits", "path": "", "validation_percent": 0},
  "optimizer": {"kind": "adamw", "learning_rate": 0.002, "weight_decay": 0.2, "beta1": 0.9, )"
            R"("beta2": 0.999, "epsilon": 1e-08, "schedule": "cosine", "warm_up_steps": 0, )"
            R"("clip_norm": 0},
  "epochs": 20,
  "batch_size": 32,
  "micro_batch_size": 8,
  "seed": 1,
  "freeze": {"policy": {"kind": "none"}, "decorators": {}},
  "reduction": "exact",
  "message_order": "by-tag"
}
)");
}

RunConfig draw_config(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
  const auto fraction = [&] { return std::uniform_real_distribution<double>(0, 1)(engine); };
  RunConfig config;
  VitConfig model;
  model.heads = draw(1, 16);
  model.dim = model.heads * draw(1, 64);
  model.dropout = fraction();
  config.data.validation_percent = draw(0, 90);
  config.data.path = draw(0, 1) == 0 ? "" : "a \"b\"\\\n\xc3\xa9/c.gz";
  config.optimizer.learning_rate = std::ldexp(fraction() + 0.1, draw(-900, 24));
  config.optimizer.epsilon = std::ldexp(1.0, draw(-1074, 0));
  config.optimizer.beta2 = fraction();
  config.optimizer.schedule = static_cast<RateSchedule>(draw(0, 2));
  config.optimizer.warm_up_steps = draw(0, 1'000'000'000);
  config.batch_size = draw(1, 1000);
  if (draw(0, 1) == 0) config.batch_growth = BatchGrowth::kWithPipelines;
  if (draw(0, 1) == 0) config.replan = Replanning::kGreedy;
  config.micro_batch_size = draw(1, config.batch_size);
  config.seed = engine() >> 11;
  config.freeze.policy = AlphaFreeze{
      .alpha = fraction(), .start = draw(0, 98), .interval = draw(1, 9), .unit = PaceUnit::kEpochs};
  if (draw(0, 1) == 0) config.message_order = MessageOrder::kAsSent;
  if (draw(0, 1) == 0) config.reduction = ReductionMode::kFast;
  config.local_statistics = config.reduction == ReductionMode::kFast && draw(0, 1) == 0;
  config.deadline_seconds = std::ldexp(fraction() + 0.1, draw(-900, 24));
  if (draw(0, 1) == 0) {
    config.data = {.kind = DataConfig::Kind::kSynthetic,
                   .path = "",
                   .train_samples = draw(1, 9999),
                   .test_samples = 1,
                   .seed = engine() >> 11};
    model.patch = draw(1, 16);
    model.image = model.patch * draw(1, 16);
    model.channels = draw(1, 3);
    model.classes = draw(2, 1000);
  }
  if (draw(0, 3) == 0) {
    config.data = {};
    config.data.kind = DataConfig::Kind::kTensors;
    config.data.files = {.train = {"a b", "c\\"}, .test = {"d"}, .validation = {}};
    if (draw(0, 1) == 0) config.data.files.validation = {"e"};
    if (draw(0, 1) == 0) {
      const auto channels = static_cast<std::size_t>(model.channels);
      config.data.files.normalization = {std::vector<double>(channels, fraction() - 0.5),
                                         std::vector<double>(channels, fraction() + 0.01)};
    }
  }
  if (draw(0, 2) == 0) {
    config.augmentation.kind = AugmentationConfig::Kind::kCrop;
    config.augmentation.pixels = draw(0, 1000);
    config.augmentation.flip = draw(0, 1) == 0;
  }
  config.model = model;
  if (draw(0, 1) == 0) {
    config.optimizer.groups = {{"*.bias", 0, fraction()}, {"classifier.?*", fraction(), 1e9}};
  }
  config.freeze.freeze_untrainable = draw(0, 1) == 0;
  if (draw(0, 1) == 0) config.init_from = "start \"1\".safetensors";
  return config;
}

// Doubles of any size and precision come back with the same bits.
TEST(RunConfig, RoundTrips) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const RunConfig config = draw_config(seed);
    const std::string text = to_json(config);
    EXPECT_EQ(parse(text), config) << text;
    EXPECT_EQ(to_json(parse(text)), text);
  }
}

TEST(RunConfig, IsNotWrittenWithWhatNoFileHolds) {
  RunConfig config;
  config.optimizer.learning_rate = std::nan("");
  EXPECT_THROW(to_json(config), std::logic_error);
  config = {};
  config.seed = (std::uint64_t{1} << 53) + 1;
  EXPECT_THROW(to_json(config), std::logic_error);
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error in " + text;
}

struct BadInput {
  std::string members;
  std::string found;
  std::string expected;
};

TEST(RunConfig, RefusesWhatCannotBeRun) {
  const std::string counts = "an integer from 1 to 1048576";
  const std::string steps = "an integer from 0 to 1000000000";
  const std::string below_one = "less than 1";
  const std::vector<BadInput> cases{
      {R"("epochs": 0)", "`0` at $.epochs", counts},
      {R"("epochs": 2.5)", "`2.5` at $.epochs", counts},
      {R"("evaluation_epochs": 0)", "`0` at $.evaluation_epochs", counts},
      {R"("batch_size": 1048577)", "`1048577` at $.batch_size", counts},
      {R"("micro_batch_size": -1)", "`-1` at $.micro_batch_size", counts},
      {R"("batch_size": 16, "micro_batch_size": 17)", "`17` at $.micro_batch_size",
       "micro_batch_size (17) no larger than batch_size (16)"},
      {R"("batch_size": 4)", "`4` at $.batch_size",
       "micro_batch_size (8) no larger than batch_size (4)"},
      {R"("seed": -1)", "`-1` at $.seed", "an integer from 0 to 9007199254740992"},
      {R"("reduction": "quick")", "`\"quick\"` at $.reduction", R"("exact" or "fast")"},
      {R"("message_order": "sorted")", "`\"sorted\"` at $.message_order",
       R"("by-tag" or "as-sent")"},
      {R"("deadline_seconds": 0)", "`0` at $.deadline_seconds", "more than 0"},
      {R"("deadline_seconds": 31536001)", "`31536001` at $.deadline_seconds",
       "at most 31536000, a year"},
      {R"("deadline_seconds": "1s")", "`\"1s\"` at $.deadline_seconds",
       "a number from 0 to 1000000000"},
      {R"("model": {"heads": 5})", "`5` at $.model.heads", "dim (64) divisible by heads (5)"},
      {R"("model": {"dim": 66})", "`66` at $.model.dim", "dim (66) divisible by heads (4)"},
      {R"("model": {"patch": 3})", "`3` at $.model.patch", "image (8) divisible by patch (3)"},
      {R"("model": {"patch": 16})", "`16` at $.model.patch", "image (8) divisible by patch (16)"},
      {R"("model": {"patch": 0})", "`0` at $.model.patch", counts},
      {R"("model": {"heads": 0})", "`0` at $.model.heads", counts},
      {R"("model": {"classes": 1})", "`1` at $.model.classes", "an integer from 2 to 1048576"},
      {R"("model": {"dropout": 1})", "`1` at $.model.dropout", below_one},
      {R"("model": {"image": 32})", "`32` at $.model.image",
       "8, the size of a digit, or data of kind \"synthetic\""},
      {R"("model": {"channels": 3})", "`3` at $.model.channels",
       "1, the grey of a digit, or data of kind \"synthetic\""},
      {R"("model": {"classes": 9})", "`9` at $.model.classes",
       "10 or more for ten digits, or data of kind \"synthetic\""},
      {R"("model": [])", "an array at $.model", "an object"},
      {R"("model": {"kind": "decoder"})", R"(`"decoder"` at $.model.kind)",
       "a model that reads images, for the digits, or data of kind \"synthetic\""},
      {R"("model": {"kind": "mlp", "classes": 9})", "`9` at $.model.classes",
       "10 or more for ten digits, or data of kind \"synthetic\""},
      {R"("model": {"kind": "encoder"}, "data": {"kind": "random-hierarchy"})",
       R"(`"random-hierarchy"` at $.data.kind)",
       "a model that reads images, or data of kind \"synthetic\""},
      {R"("model": {"kind": "encoder"}, "data": {"kind": "synthetic"}, )"
       R"("augmentation": {"kind": "shift"})",
       R"(`"shift"` at $.augmentation.kind)", "\"none\", or a model that reads images"},
      {R"("data": {"kind": "cifar"})", "`\"cifar\"` at $.data.kind",
       R"("digits", "synthetic", "random-hierarchy" or "tensors")"},
      {R"("data": {"kind": "tensors", "train": "a"})", "an object without \"test\" at $.data",
       "the key \"test\""},
      {R"("data": {"kind": "tensors", "train": [], "test": "a"})", "no file at $.data.train",
       "at least one"},
      {R"("data": {"kind": "tensors", "train": "a", "test": ["b"], "validation": "c", "validation_percent": 5})",
       "`5` at $.data.validation_percent", "0 beside \"validation\""},
      {R"("data": {"kind": "tensors", "train": "a", "test": "b", "normalization": {"mean": [0, 1], "deviation": [1]}})",
       "2 means and 1 deviations at $.data.normalization.deviation",
       "one of each for each channel"},
      {R"("data": {"kind": "tensors", "train": "a", "test": "b", "normalization": {"mean": [0, 1], "deviation": [1, 2]}})",
       "a normalization of 2 channels at $.data.normalization",
       "one for each channel of the images that the model reads"},
      {R"("augmentation": {"kind": "crop", "pixels": 1})",
       R"(the unknown key "pixels" at $.augmentation)",
       R"(no keys but "kind", "padding", "flip", "variants")"},
      {R"("data": {"kind": 1})", "`1` at $.data.kind", "a string"},
      {R"("data": {"train_samples": 5})", R"(the unknown key "train_samples" at $.data)",
       R"(no keys but "kind", "path", "validation_percent")"},
      {R"("data": {"validation_percent": 91})", "`91` at $.data.validation_percent",
       "an integer from 0 to 90"},
      {R"("data": {"kind": "random-hierarchy"})", "`\"random-hierarchy\"` at $.data.kind",
       "channels (1) of the model equal to symbols (8)"},
      {R"("data": {"kind": "random-hierarchy", "branching": 1})", "`1` at $.data.branching",
       "an integer from 2 to 1024"},
      {R"("data": {"kind": "synthetic", "test_samples": 0})", "`0` at $.data.test_samples",
       "an integer from 1 to 100000000"},
      {R"("optimizer": {"learning_rate": 0})", "`0` at $.optimizer.learning_rate", "more than 0"},
      {R"("optimizer": {"learning_rate": true})", "`true` at $.optimizer.learning_rate",
       "a number from 0 to 1000000000"},
      {R"("optimizer": {"beta1": 1.0})", "`1.0` at $.optimizer.beta1", below_one},
      {R"("optimizer": {"epsilon": 0.0})", "`0.0` at $.optimizer.epsilon", "more than 0"},
      {R"("optimizer": {"weight_decay": -0.1})", "`-0.1` at $.optimizer.weight_decay",
       "a number from 0 to 1000000000"},
      {R"("optimizer": {"momentum": 0.5})", R"(the unknown key "momentum" at $.optimizer)",
       R"(no keys but "kind", "learning_rate", "weight_decay", "beta1", "beta2", "epsilon", )"
       R"("schedule", "cosine", "warm_up_steps", "clip_norm", "groups")"},
      {R"("optimizer": {"cosine": 1})", "`1` at $.optimizer.cosine", "`true` or `false`"},
      {R"("optimizer": {"schedule": "step"})", R"(`"step"` at $.optimizer.schedule)",
       R"("cosine", "linear" or "constant")"},
      {R"("optimizer": {"schedule": "linear", "cosine": true})",
       R"("cosine" beside "schedule" at $.optimizer.cosine)",
       R"(one of them: "cosine": true is "schedule": "cosine", and false "constant")"},
      {R"("optimizer": {"groups": [{"weight_decay": 0}]})",
       R"(an object without "match" at $.optimizer.groups[0])", R"(the key "match")"},
      {R"("optimizer": {"groups": [{"match": ""}]})", R"(`""` at $.optimizer.groups[0].match)",
       "a pattern of parameters' names"},
      {R"("optimizer": {"groups": [{"match": "*", "learning_rate_scale": -1}]})",
       "`-1` at $.optimizer.groups[0].learning_rate_scale", "a number from 0 to 1000000000"},
      {R"("optimizer": {"groups": [{"match": "*.bias"}, {"match": "vit.*.lora_?"}]})",
       R"(`"vit.*.lora_?"` at $.optimizer.groups[1].match)",
       "a pattern that matches the name of a parameter of the model"},
      {R"("optimizer": {"warm_up_steps": -1})", "`-1` at $.optimizer.warm_up_steps", steps},
      {R"("optimizer": {"warm_up_steps": 1.5})", "`1.5` at $.optimizer.warm_up_steps", steps},
      {R"("optimizer": {"warm_up_steps": 1000000001})", "`1000000001` at $.optimizer.warm_up_steps",
       steps},
      {R"("optimizer": {"clip_norm": -1})", "`-1` at $.optimizer.clip_norm",
       "a number from 0 to 1000000000"},
      {R"("freeze": {"alpha": 1})", "`1` at $.freeze.alpha", below_one},
      {R"("freeze": {"alpha": -0.5})", "`-0.5` at $.freeze.alpha", "a number from 0 to 1"},
      {R"("freeze": {"start_epoch": 0})", "`0` at $.freeze.start_epoch", counts},
      {R"("freeze": {"interval_epochs": 0})", "`0` at $.freeze.interval_epochs", counts},
      {R"("batch_growth": "always")", R"(`"always"` at $.batch_growth)",
       R"("none" or "with-pipelines")"},
      {R"("learning_rate": 0.1)", R"(the unknown key "learning_rate" at $)",
       R"(no keys but "format", "version", "model", "data", "init_from", "optimizer", "epochs", "evaluation_epochs", )"
       R"("batch_size", "batch_growth", "micro_batch_size", "seed", "replan", "freeze", "reduction", )"
       R"("local_statistics", "precision", "message_order", )"
       R"("deadline_seconds", "augmentation", "cache", "drift")"},
      {R"("drift": {"kind": "maybe"})", R"(`"maybe"` at $.drift.kind)", R"("off" or "on")"},
      {R"("drift": {"kind": "on", "window_steps": 0})", "`0` at $.drift.window_steps",
       "an integer from 1 to 1000000"},
      {R"("drift": {"kind": "on", "false_alarms": 0})", "`0` at $.drift.false_alarms",
       "more than 0"},
      {R"("drift": {"window_steps": 6})", R"(the unknown key "window_steps" at $.drift)",
       R"(no keys but "kind")"},
      {R"("batch_growth": "with-pipelines", "drift": {"kind": "on"})",
       "drift watched in a run whose batch grows with the pipelines at $.drift",
       R"("batch_growth": "none", or no drift)"},
      {R"("local_statistics": true, "reduction": "fast", "drift": {"kind": "on"})",
       "drift watched in a run whose slices normalise by statistics of their own at $.drift",
       R"("local_statistics": false, or no drift)"},
  };
  for (const BadInput& bad : cases) {
    EXPECT_EQ(error_of(with_members(bad.members)),
              "run.json:2: found " + bad.found + ", expected " + bad.expected);
  }
}

TEST(RunConfig, TakesStatisticsOfSlicesInModeFastAlone) {
  const RunConfig config = parse(with_members(R"("local_statistics": true, "reduction": "fast")"));
  EXPECT_TRUE(config.local_statistics);
  EXPECT_EQ(parse(to_json(config)), config);
  EXPECT_FALSE(parse(with_members(R"("local_statistics": false)")).local_statistics);
  EXPECT_EQ(error_of(with_members(R"("local_statistics": true)")),
            R"(run.json:2: found "local_statistics": true beside "reduction": "exact" at )"
            R"($.local_statistics, expected false, or "reduction": "fast")");
}

TEST(RunConfig, WatchesDriftWhereAskedToAndRoundTrips) {
  EXPECT_FALSE(parse(with_members(R"("drift": {})")).drift.is_on());
  const RunConfig config = parse_run_config(
      with_members(R"("drift": {"kind": "on", "window_steps": 9, "false_alarms": 0.01})"),
      "run.json");
  EXPECT_EQ(config.drift, (DriftConfig{DriftConfig::Kind::kOn, 9, 0.01}));
  EXPECT_EQ(parse_run_config(to_json(config), "run.json"), config);
}

TEST(RunConfig, RefusesNumbersThatAreNotFinite) {
  for (const std::string number : {"1e999", "NaN", "Infinity", "-1e999"}) {
    const std::string rate = R"("optimizer": {"learning_rate": )" + number + "}";
    EXPECT_EQ(error_of(with_members(rate)).find("run.json:2: found "), 0U) << number;
  }
}

TEST(RunConfig, RefusesAnotherFormatAndDuplicateKeys) {
  EXPECT_THROW(parse(R"({"format": "frazil.plan", "version": 1})"), InputError);
  EXPECT_THROW(parse(R"({"format": "frazil.run", "version": 2})"), InputError);
  EXPECT_THROW(parse(R"({"version": 1})"), InputError);
  EXPECT_THROW(parse(with_members(R"("epochs": 1, "epochs": 1)")), InputError);
  EXPECT_THROW(parse(""), InputError);
}

class RunConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::temp_directory_path() / ("frazil_" + name + std::to_string(getpid()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunConfig read(const std::string& members) const {
    write_text_file(folder_ / "run.json", with_members(members));
    return read_run_config(folder_ / "run.json");
  }

  fs::path folder_;
};

TEST_F(RunConfigFile, NamesDataFromItsOwnFolder) {
  EXPECT_EQ(read(R"("data": {"path": "../data/my.csv.gz"})").data.path,
            (folder_.parent_path() / "data/my.csv.gz").string());
  EXPECT_EQ(read(R"("data": {"path": "/data/my.csv.gz"})").data.path, "/data/my.csv.gz");
}

TEST_F(RunConfigFile, NamesStartWeightsFromItsOwnFolder) {
  EXPECT_EQ(read(R"("init_from": "w/start.safetensors")").init_from,
            (folder_ / "w/start.safetensors").string());
  EXPECT_EQ(read(R"("epochs": 3)").init_from, "");
}

TEST_F(RunConfigFile, WithoutAPathMeansTheShippedDigits) {
  const fs::path shipped = read(R"("epochs": 3)").data.path;
  EXPECT_TRUE(shipped.is_absolute());
  EXPECT_TRUE(fs::exists(shipped)) << shipped;
  EXPECT_EQ(shipped.filename(), "digits.csv.gz");
  EXPECT_EQ(read(R"("data": {"kind": "synthetic"})").data.path, "");
}

TEST_F(RunConfigFile, ThatIsMissingOrBadIsAnErrorWithItsName) {
  EXPECT_THROW(read_run_config(folder_ / "none.json"), InputError);
  try {
    read(R"("epochs": 0)");
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), (folder_ / "run.json").string());
    EXPECT_EQ(error.line(), 2);
  }
}

TEST(RunConfig, TakesTheOldBooleanForTwoOfTheSchedules) {
  const auto schedule = [](const std::string& text) {
    return parse(with_members(R"("optimizer": {)" + text + "}")).optimizer.schedule;
  };
  EXPECT_EQ(schedule(R"("cosine": true)"), RateSchedule::kCosine);
  EXPECT_EQ(schedule(R"("cosine": false)"), RateSchedule::kConstant);
  EXPECT_EQ(schedule(R"("schedule": "cosine")"), RateSchedule::kCosine);
  EXPECT_EQ(schedule(R"("schedule": "linear")"), RateSchedule::kLinear);
  EXPECT_EQ(schedule(R"("schedule": "constant")"), RateSchedule::kConstant);
}

TEST(RunConfig, GivesAGroupWhatItLeavesOut) {
  const OptimizerConfig config = parse(with_members(R"("optimizer": {"weight_decay": 0.25, "groups":
      [{"match": "*norm*"}, {"match": "*.bias", "weight_decay": 0, "learning_rate_scale": 2}]})"))
                                     .optimizer;
  const std::vector<ParameterGroup> expected{{"*norm*", 0.25, 1}, {"*.bias", 0, 2}};
  EXPECT_EQ(config.groups, expected);
}

}  // namespace
}  // namespace frazil
