// Tests `frazil ablate --simulate` as a process, against the answers of `plan` and `simulate`.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "planner/plan/plan_json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/golden.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"
#include "tests/support/write_freeze_trace.h"

namespace frazil {
namespace {

using nlohmann::json;
using std::chrono::microseconds;

class AblateSimulated : public testing::Test {
 protected:
  void SetUp() override {
    const ModelProfile profile =
        make_chain(8, microseconds{100}, microseconds{100}, microseconds{100});
    write_model_profile(profile, folder.path("model.json"));
    write_memory(Bytes{30'000});
    FreezeTrace trace;
    trace.blocks.assign(8, "block");
    trace.steps = 4000;
    trace.events.push_back({1000, MaskEvent{FreezeMask::parse("00011111", "test", 1)}});
    trace.events.push_back({2000, MaskEvent{FreezeMask::parse("00000011", "test", 1)}});
    write_freeze_trace(trace, folder.path("trace.jsonl"));
  }

  void write_memory(Bytes bytes) const {
    write_cluster(make_uniform_cluster(4, bytes, {microseconds{2}, BytesPerSecond{1'000'000'000}}),
                  folder.path("cluster.json"));
  }
  Outcome run(const std::string& verb, const std::string& flags) const {
    return folder.run(verb, "--profile model.json --cluster cluster.json " + flags);
  }
  json ablate(const std::string& flags) const {
    const Outcome outcome =
        run("ablate", "--simulate --forecast trace.jsonl --batch 8 --json " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  json plan(const std::string& flags) const {
    const Outcome outcome = run("plan", "--forecast trace.jsonl --batch 8 --json " + flags);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  static json arm(const json& answer, const std::string& name) {
    for (const json& each : answer.at("arms")) {
      if (each.at("arm") == name) return each;
    }
    ADD_FAILURE() << "no arm " << name;
    return {};
  }

  ProgramFolder folder{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(AblateSimulated, TakesTheTotalsOfPlanForecastToTheNanosecond) {
  const std::string asked = "--switch-time 5ms --micro-batch 1,2 ";
  const std::string cached = "--samples 800 --cache-memory 1MB --cache-disk 1MB ";
  const json answer = ablate(asked + cached);
  const json all = plan(asked + cached);
  EXPECT_EQ(arm(answer, "all").at("time_ns"), all.at("total_ns"));
  EXPECT_EQ(arm(answer, "pipe-replicas").at("time_ns"), all.at("nothing_cached_ns"));
  EXPECT_EQ(arm(answer, "pipe-replicas").at("time_ns"), plan(asked).at("total_ns"));
  std::int64_t moved = 0;
  for (const json& change : all.at("switches")) moved += change.at("total_ns").get<std::int64_t>();
  EXPECT_EQ(arm(answer, "all").at("transitions_ns"), moved);
  EXPECT_GT(moved, 0);
  std::int64_t filling = 0;
  for (const json& fill : all.at("fills")) filling += fill.at("cost_ns").get<std::int64_t>();
  EXPECT_EQ(arm(answer, "all").at("filling_ns"), filling);
  EXPECT_GT(filling, 0);
  // The model fits no device, so that the first plan has fewer replicas than devices.
  const auto first = run("plan", "--batch 8 --micro-batch 1,2 --top 1 --out first.json");
  ASSERT_EQ(first.code, 0) << first.err;
  const std::size_t replicas = read_plan(folder.path("first.json")).pipelines.size();
  ASSERT_LT(replicas, 4U);
  const std::string few = asked + "--max-replicas " + std::to_string(replicas) + " ";
  EXPECT_EQ(arm(answer, "pipe").at("time_ns"), plan(few).at("total_ns"));
  EXPECT_EQ(arm(answer, "pipe-cache").at("time_ns"), plan(few + cached).at("total_ns"));
}

TEST_F(AblateSimulated, HoldsAPlanForTheTimesThatSimulatePredicts) {
  const json answer = ablate("--clip --overlap-reductions");
  const auto first = run("plan", "--batch 8 --clip --overlap-reductions --top 1 --out first.json");
  ASSERT_EQ(first.code, 0) << first.err;
  const auto step_under = [&](const char* bits) {
    Plan plan = read_plan(folder.path("first.json"));
    plan.mask = FreezeMask::parse(bits, "test", 1);
    write_plan(plan, folder.path("masked.json"));
    const auto step = run("simulate", "--plan masked.json --clip --overlap-reductions --json");
    EXPECT_EQ(step.code, 0) << step.err;
    return json::parse(step.out).at("makespan_ns").get<std::int64_t>();
  };
  const std::int64_t whole = step_under("11111111");
  EXPECT_EQ(arm(answer, "unfrozen").at("time_ns"), 4000 * whole);
  EXPECT_EQ(arm(answer, "unfrozen").at("over_unfrozen"), 1.0);
  EXPECT_EQ(arm(answer, "freeze").at("time_ns"),
            1000 * whole + 1000 * step_under("00011111") + 2000 * step_under("00000011"));
}

// From step 1500 on all devices but the first take three times as long: inside a mask of the
// policy. An epoch of arm shorter, which has 100 steps, takes one time before and another after.
TEST_F(AblateSimulated, PricesStepsByTheCostsThatTheRunMeasured) {
  FreezeTrace trace = read_freeze_trace(folder.path("trace.jsonl"));
  trace.events.insert(trace.events.begin() + 1,
                      {1500, DriftEvent{.devices_ppm = {1'000'000, 3'000'000, 3'000'000, 3'000'000},
                                        .layers_ppm = std::vector<std::int64_t>(8, 1'000'000)}});
  write_freeze_trace(trace, folder.path("trace.jsonl"));
  const std::string asked = "--switch-time 5ms ";
  const json answer = ablate(asked);
  EXPECT_EQ(arm(answer, "pipe-replicas").at("time_ns"), plan("--switch-time 5ms").at("total_ns"));
  ASSERT_EQ(run("plan", "--batch 8 --top 1 --out first.json").code, 0);
  const auto find_step = [&](const std::string& cluster) {
    const auto step = folder.run(
        "simulate", "--profile model.json --plan first.json --json --cluster " + cluster);
    EXPECT_EQ(step.code, 0) << step.err;
    return json::parse(step.out).at("makespan_ns").get<std::int64_t>();
  };
  Cluster slow =
      make_uniform_cluster(4, Bytes{30'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  for (std::size_t d = 1; d < 4; ++d) slow.devices[d].time_ppm = 3'000'000;
  write_cluster(slow, folder.path("slow.json"));
  const std::int64_t before = find_step("cluster.json");
  const std::int64_t after = find_step("slow.json");
  ASSERT_GT(after, before);
  EXPECT_EQ(arm(answer, "unfrozen").at("time_ns"), 1500 * before + 2500 * after);
  const std::int64_t all = arm(answer, "all").at("time_ns");
  const auto time_of = [&](std::int64_t steps) {
    return steps <= 1500 ? steps * before : 1500 * before + (steps - 1500) * after;
  };
  std::int64_t nearest = 1;
  for (std::int64_t steps = 2; steps <= 4000; ++steps) {
    if (std::abs(time_of(steps) - all) <= std::abs(time_of(nearest) - all)) nearest = steps;
  }
  EXPECT_GT(nearest, 1500) << "some steps are slow";
  EXPECT_EQ(arm(answer, "shorter").at("steps"), nearest);
  EXPECT_EQ(arm(answer, "shorter").at("time_ns"), time_of(nearest));
  EXPECT_LE(answer.at("compute_limit_ns"), arm(answer, "all").at("time_ns"));
  const std::string notes = answer.at("notes").dump();
  EXPECT_NE(notes.find("from step 1500 on device 1 takes 3.00 x, device 2"), std::string::npos)
      << notes;
  EXPECT_NE(notes.find("arms that change plans know these costs ahead"), std::string::npos);
}

TEST_F(AblateSimulated, SaysOfArmsThatDoNotFitWhy) {
  const json answer = ablate("");
  EXPECT_NE(arm(answer, "one-device").at("no_time_because").get<std::string>().find("device0"),
            std::string::npos)
      << arm(answer, "one-device");
  EXPECT_FALSE(arm(answer, "data-parallel").contains("time_ns"));
  EXPECT_LT(arm(answer, "pipe").at("time_ns"), arm(answer, "unfrozen").at("time_ns"));
  EXPECT_LT(arm(answer, "all").at("time_ns"), arm(answer, "pipe").at("time_ns"));
  const Outcome text = run("ablate", "--simulate --forecast trace.jsonl --batch 8");
  EXPECT_NE(text.out.find("\none-device: no plan is feasible; "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\nnote: no arm caches: "), std::string::npos) << text.out;
  write_memory(Bytes{3000});
  const Outcome none = run("ablate", "--simulate --forecast trace.jsonl --batch 8");
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(none.err.find("no arm has a plan that fits: "), std::string::npos) << none.err;
}

TEST_F(AblateSimulated, RefusesInOneSentence) {
  struct Row {
    std::string flags;
    std::string said;
  };
  const std::vector<Row> rows = {
      {"--forecast trace.jsonl --batch 8", "found --forecast, expected --simulate beside it"},
      {"--simulate --batch 8", "--forecast"},
      {"--simulate --forecast trace.jsonl", "--batch"},
      {"--simulate --forecast model.json --batch 8", "model.json:1"},
      {"--simulate --forecast trace.jsonl --batch 8 --schedules 1f1b,search", "search"},
      {"--simulate --forecast trace.jsonl --batch 8 --seed -1", "--seed"},
      {"--simulate --forecast trace.jsonl --batch 8 --samples 800", "--cache-memory"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = run("ablate", row.flags);
    EXPECT_EQ(outcome.code, 2) << row.flags;
    EXPECT_NE(outcome.err.find(row.said), std::string::npos) << row.flags << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

// The digits on two streams of an H100, under the masks of exec/runs/digits.json.
TEST_F(AblateSimulated, PredictsTheShippedProfile) {
  const std::string root = FRAZIL_SOURCE_FOLDER;
  const std::string measured = root + "/profiles/measured/h100-2026-11-26/digits_";
  const std::string flags = "--simulate --profile " + measured + "model.json --cluster " +
                            measured + "cluster.json --batch 32 --forecast " + root +
                            "/traces/digits_freezing.jsonl --samples 1437 --cache-memory 1GB "
                            "--switch-time 50ms";
  const Outcome outcome = folder.run("ablate", flags);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(matches_golden("analysis_predicted_ablation.txt", outcome.out));
}

}  // namespace
}  // namespace frazil
