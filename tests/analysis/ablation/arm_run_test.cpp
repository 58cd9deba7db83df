#include "analysis/ablation/arm_run.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using Json = nlohmann::json;

class ArmRuns : public testing::Test {
 protected:
  BaseRun read(const std::string& keys) const {
    write_text_file(folder_.path("run.json"),
                    R"({"format": "frazil.run", "version": 1)" + keys + "}");
    return read_base_run(folder_.path("run.json"));
  }
  static Json make(const BaseRun& base, const ArmRun& run) {
    return Json::parse(configure(base, run));
  }
  const ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ArmRuns, KeepsWhatIsTrainedAndChangesWhatTheArmSays) {
  const BaseRun base = read(
      R"(, "model": {"blocks": 3}, "epochs": 5, "cache": {"kind": "on", "memory_bytes": 77},
           "freeze": {"policy": {"kind": "alpha"}, "freeze_untrainable": true})");
  for (const ArmFacts& facts : all_arms()) {
    SCOPED_TRACE(facts.name);
    const Json run = make(base, {facts.arm, 9, "masks.jsonl"});
    EXPECT_EQ(run["model"], Json({{"blocks", 3}}));
    EXPECT_EQ(run["seed"], 9);
    EXPECT_EQ(run["epochs"], 5);
    EXPECT_EQ(run.contains("cache"), facts.caches);
    if (facts.caches) {
      EXPECT_EQ(run["cache"]["memory_bytes"], 77);
    }
    EXPECT_EQ(run["freeze"]["freeze_untrainable"], true);
    const std::string kind = run["freeze"]["policy"]["kind"];
    switch (facts.masks) {
      case ArmFacts::Masks::kNone:
        EXPECT_EQ(kind, "none");
        break;
      case ArmFacts::Masks::kPolicy:
        EXPECT_EQ(kind, "alpha");
        break;
      case ArmFacts::Masks::kReversed:
      case ArmFacts::Masks::kDrawn:
        EXPECT_EQ(kind, "trace");
        EXPECT_TRUE(std::filesystem::path(run["freeze"]["policy"]["path"]).is_absolute());
        break;
    }
  }
}

TEST_F(ArmRuns, CachesWhereTheUserSaysNothing) {
  EXPECT_EQ(make(read(""), {Arm::kAll})["cache"]["kind"], "on");
  EXPECT_EQ(make(read(R"(, "cache": {"kind": "off"})"), {Arm::kAll})["cache"]["kind"], "on");
}

TEST_F(ArmRuns, NamesFilesSoThatTheConfigurationMayLieElsewhere) {
  const BaseRun base = read(
      R"(, "init_from": "w.safetensors", "model": {"kind": "file", "path": "m.json"},
           "data": {"kind": "tensors", "train": ["a", "/b"], "test": "c"},
           "freeze": {"policy": {"kind": "trace", "path": "../t.jsonl"}})");
  const Json run = make(base, {Arm::kAll});
  EXPECT_EQ(run["init_from"], folder_.path("w.safetensors"));
  EXPECT_EQ(run["model"]["path"], folder_.path("m.json"));
  EXPECT_EQ(run["data"]["train"], Json({folder_.path("a"), "/b"}));
  EXPECT_EQ(run["data"]["test"], folder_.path("c"));
  EXPECT_EQ(run["freeze"]["policy"]["path"],
            std::filesystem::path(folder_.path("../t.jsonl")).lexically_normal().string());
  const Json taught = make(read(R"(, "model": {"kind": "distillation", "teacher_weights": "w",
      "teacher": {"kind": "file", "path": "t.json"}, "student": {"kind": "file", "path": "s"}})"),
                           {Arm::kAll})["model"];
  EXPECT_EQ(taught["teacher_weights"], folder_.path("w"));
  EXPECT_EQ(taught["teacher"]["path"], folder_.path("t.json"));
  EXPECT_EQ(taught["student"]["path"], folder_.path("s"));
}

TEST_F(ArmRuns, AskThePlannerWhatTheRunAsks) {
  const BaseRun base = read(R"(, "batch_size": 24, "micro_batch_size": 6, "reduction": "fast",
                                 "optimizer": {"clip_norm": 1})");
  const SearchOptions question =
      question_of(base, make_chain(4, Duration{1}, Duration{1}, Duration{1}));
  EXPECT_EQ(question.batch_size, 24);
  EXPECT_EQ(question.micro_batch_sizes, std::vector<int>{6});
  EXPECT_EQ(question.mask.text(), "1111");
  EXPECT_EQ(question.reduction, ReductionMode::kFast);
  EXPECT_TRUE(question.clip);
  EXPECT_EQ(read("").batch_size, 32);
  EXPECT_EQ(read("").micro_batch_size, 8);
  EXPECT_EQ(read("").epochs, 20);
}

TEST_F(ArmRuns, KnowWhetherTheRunFreezes) {
  EXPECT_FALSE(read("").freezes);
  EXPECT_FALSE(read(R"(, "freeze": {"alpha": 0})").freezes);
  EXPECT_TRUE(read(R"(, "freeze": {"alpha": 0.5})").freezes);
  EXPECT_FALSE(read(R"(, "freeze": {"policy": {"kind": "none"}})").freezes);
  EXPECT_TRUE(read(R"(, "freeze": {"policy": {"kind": "linear"}})").freezes);
  EXPECT_THROW((void)read(R"(, "epochs": 0)"), InputError);
}

// Sums of gradients lie beside the optimizer's state while AutoFreeze watches.
TEST_F(ArmRuns, PlanForTheMemoryOfSignalsWhereThePolicyDecides) {
  const ModelProfile chain = make_chain(3, Duration{1}, Duration{1}, Duration{1});
  const BaseRun watching = read(R"(, "freeze": {"policy": {"kind": "autofreeze"}})");
  EXPECT_EQ(profile_for(watching, ArmFacts::Masks::kPolicy, chain).layers[1].optimizer_state.count,
            chain.layers[1].optimizer_state.count + 1000);
  EXPECT_EQ(profile_for(watching, ArmFacts::Masks::kNone, chain), chain);
  EXPECT_EQ(profile_for(read(R"(, "freeze": {"alpha": 0.5})"), ArmFacts::Masks::kPolicy, chain),
            chain);
  EXPECT_THROW((void)profile_for(read(R"(, "freeze": {"policy": {"kind": "luck"}})"),
                                 ArmFacts::Masks::kPolicy, chain),
               InputError);
}

TEST(ShorterRuns, TakeTheNearestNumberOfSteps) {
  const auto shorter = [](Step steps, int unfrozen, int all) {
    return shorten(steps, Duration{unfrozen}, Duration{all}).steps;
  };
  EXPECT_EQ(shorter(20, 200, 100), 10);
  EXPECT_EQ(shorter(20, 200, 104), 10);  // 10.4 steps
  EXPECT_EQ(shorter(20, 200, 106), 11);
  EXPECT_EQ(shorter(4, 400, 10), 1);   // 0.1 steps
  EXPECT_EQ(shorter(4, 400, 500), 4);  // `all` was slower
}

TEST_F(ArmRuns, WarmUpForTheSameShareOfAShorterRun) {
  const BaseRun base = read(R"(, "optimizer": {"warm_up_steps": 50})");
  const auto warm_up = [&](const ArmRun& run) {
    return make(base, run)["optimizer"]["warm_up_steps"];
  };
  EXPECT_EQ(warm_up({Arm::kUnfrozen}), 50);
  EXPECT_EQ(warm_up({Arm::kShorter, 1, {}, ShorterRun{45, 100}}), 23);
}

TEST_F(ArmRuns, AreOthersWhereAFileThatTheyNameIsAnother) {
  const auto hash = [&](const std::string& text) {
    write_text_file(folder_.path("t.jsonl"), text);
    return read(R"(, "freeze": {"policy": {"kind": "trace", "path": "t.jsonl"}})").hash;
  };
  const std::string before = hash("masks");
  EXPECT_NE(hash("other masks"), before);
  EXPECT_EQ(hash("masks"), before);
}

TEST_F(ArmRuns, CacheByDefaultWhereACacheIsOffWhateverItsKeys) {
  EXPECT_EQ(read(R"(, "cache": {"kind": "off", "memory_bytes": 1000})").store.memory.limit,
            read("").store.memory.limit);
  EXPECT_EQ(read(R"(, "cache": {"kind": "on", "memory_bytes": 1000})").store.memory.limit,
            Bytes{1000});
}

}  // namespace
}  // namespace frazil
