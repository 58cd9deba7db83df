#include "planner/plan/plan_json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/support/golden.h"

namespace frazil {
namespace {

Plan plan_to_write() {
  Plan plan;
  plan.model_hash = "0123456789abcdef";
  plan.batch_size = 30;
  plan.micro_batch_size = 8;
  plan.mask = FreezeMask::parse("0011", "test", 1);
  plan.pipelines = {make_pipeline(8, {LayerId{5}}, {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{1}}),
                    make_pipeline(8, {LayerId{5}}, {DeviceId{2}, DeviceId{3}},
                                  {MicroBatchId{2}, MicroBatchId{3}})};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward, .in_flight = 3};
  plan.provenance = {{"made by", "a test"}, {"date", "2024-01-01"}};
  return plan;
}

// The shortest plan leaves out every optional key.
constexpr const char* kShortest = R"({
  "format": "frazil.plan",
  "version": 1,
  "model_hash": "0123456789abcdef",
  "batch_size": 4,
  "micro_batch_size": 2,
  "mask": "11",
  "pipelines": [
    {
      "stages": [{"layers": [[0, 3]], "devices": [0]}],
      "micro_batches": [[0, 1]]
    }
  ],
  "schedule": {"name": "gpipe"}
})";

TEST(PlanJson, WritesAPlanThatPeopleCanReadAndCompare) {
  EXPECT_TRUE(matches_golden("planner/plan.json", to_json(plan_to_write())));
}

TEST(PlanJson, OptionalKeysHaveDefaults) {
  const Plan plan = parse_plan(kShortest, "plan.json");
  EXPECT_FALSE(plan.cache_frozen_prefix);
  EXPECT_EQ(plan.pipelines[0].stages[0].axis, DeviceAxis::kData);
  EXPECT_EQ(plan.pipelines[0].stages[0].memory, MemoryPolicy::kKeep);
  EXPECT_EQ(plan.reduction, ReductionMode::kExact);
  EXPECT_EQ(plan.versions, WeightVersions::kSync);
  EXPECT_TRUE(plan.provenance.empty());
  EXPECT_EQ(plan.schedule, ScheduleChoice{NamedSchedule{.kind = ScheduleKind::kGpipe}});
}

TEST(PlanJson, FilesRoundTrip) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "frazil_plan_json";
  write_plan(plan_to_write(), folder / "plan.json");
  EXPECT_EQ(read_plan(folder / "plan.json"), plan_to_write());
  EXPECT_EQ(read_text_file(folder / "plan.json"), to_json(plan_to_write()));
  std::filesystem::remove_all(folder);
  EXPECT_THROW(read_plan(folder / "plan.json"), InputError);
}

TEST(PlanJson, EveryScheduleChoiceRoundTrips) {
  Plan plan = plan_to_write();
  const auto micro_batch = [](int stage, ActionKind kind, int m) {
    return make_action(PipelineId{0}, StageId{stage}, kind, MicroBatchId{m});
  };
  const Action forward = micro_batch(1, ActionKind::kForward, 2);
  const Action backward = micro_batch(1, ActionKind::kBackward, 0);
  plan.schedule = ExplicitSchedule{
      {{micro_batch(0, ActionKind::kForward, 0), micro_batch(0, ActionKind::kBackwardInput, 0)},
       {make_pair_action(forward, backward)},
       {}}};
  EXPECT_EQ(parse_plan(to_json(plan), "plan.json"), plan);
  EXPECT_NE(to_json(plan).find("[\"0F0\", \"0I0\"]"), std::string::npos);
  for (const DispatchPolicy policy : {DispatchPolicy::kFifo, DispatchPolicy::kPriority,
                                      DispatchPolicy::kLrtf, DispatchPolicy::kSteal}) {
    plan.schedule = policy;
    EXPECT_EQ(parse_plan(to_json(plan), "plan.json"), plan);
  }
}

Plan random_plan(std::mt19937_64& random) {
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  Plan plan;
  plan.model_hash = std::to_string(random());
  plan.batch_size = 1 + below(1'000'000'000);
  plan.micro_batch_size = 1 + below(1'000'000'000);
  plan.mask = FreezeMask::all_active(1 + below(6));
  plan.mask.set_active(BlockId{0}, plan.mask.blocks() == 1);
  plan.cache_frozen_prefix = below(2) == 1;
  for (int p = below(3); p >= 0; --p) {
    Pipeline pipeline;
    for (int s = below(4); s > 0; --s) {
      Stage stage;
      for (int r = below(3); r > 0; --r) {
        const int first = below(100);
        stage.layers.push_back({LayerId{first}, LayerId{first + below(5)}});
      }
      for (int d = below(3); d > 0; --d) stage.devices.push_back(DeviceId{below(9)});
      stage.axis = static_cast<DeviceAxis>(below(6));
      stage.memory = static_cast<MemoryPolicy>(below(3));
      pipeline.stages.push_back(stage);
    }
    for (int i = below(3); i > 0; --i) {
      pipeline.micro_batches.push_back({MicroBatchId{i}, MicroBatchId{i + below(2)}});
    }
    plan.pipelines.push_back(pipeline);
  }
  NamedSchedule schedule{.kind = static_cast<ScheduleKind>(below(21)), .chunks = 1 + below(4)};
  if (below(2) == 1) schedule.in_flight = 1 + below(20);
  plan.schedule = schedule;
  plan.reduction = static_cast<ReductionMode>(below(2));
  plan.versions = static_cast<WeightVersions>(below(5));
  if (below(2) == 1) plan.provenance["key \"quoted\"\n"] = "caf\u00e9";
  return plan;
}

TEST(PlanJson, RandomPlansRoundTrip) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Plan plan = random_plan(random);
    const std::string text = to_json(plan);
    const Plan again = parse_plan(text, "plan.json");
    EXPECT_EQ(again, plan);
    EXPECT_EQ(to_json(again), text);
  }
}

struct BadInput {
  std::string from;  // what stands in kShortest
  std::string to;    // what stands there instead
  int line;
  std::string found;
  std::string expected;
};

TEST(PlanJson, NamesEveryFaultOfAFileWithLineAndPath) {
  const std::vector<BadInput> inputs{
      {"frazil.plan", "frazil.model", 2, "`\"frazil.model\"` at $.format", "`\"frazil.plan\"`"},
      {"\"version\": 1", "\"version\": 2", 3, "`2` at $.version", "version 1"},
      {"\"model_hash\": \"0123456789abcdef\",", "", 1, "an object without \"model_hash\" at $",
       "the key \"model_hash\""},
      {"\"batch_size\": 4", "\"batch_size\": 0", 5, "`0` at $.batch_size",
       "an integer from 1 to 1000000000"},
      {"\"batch_size\": 4", "\"batch_size\": 4.5", 5, "`4.5` at $.batch_size",
       "an integer from 1 to 1000000000"},
      {"\"micro_batch_size\": 2", "\"micro_batch_size\": 1000000001", 6,
       "`1000000001` at $.micro_batch_size", "an integer from 1 to 1000000000"},
      {"\"mask\": \"11\"", "\"mask\": 11", 7, "`11` at $.mask", "a string"},
      {"\"pipelines\": [", "\"pipeline\": 1, \"pipelines\": [", 8,
       "the unknown key \"pipeline\" at $", ""},
      {"\"mask\": \"11\"", "\"mask\": \"11\", \"mask\": \"11\"", 7, "the key \"mask\" again",
       "it once (first on line 7)"},
      {"[[0, 3]]", "[[3, 0]]", 10, "[3, 0] at $.pipelines[0].stages[0].layers[0]",
       "a range [first, last]"},
      {"[[0, 3]]", "[[0]]", 10, "an array of 1 at $.pipelines[0].stages[0].layers[0]",
       "a range [first, last]"},
      {"[[0, 3]]", "[0, 3]", 10, "`0` at $.pipelines[0].stages[0].layers[0]", "an array"},
      {"[[0, 3]]", "[[-1, 3]]", 10, "`-1` at $.pipelines[0].stages[0].layers[0][0]",
       "an integer from 0 to 2147483647"},
      {"\"devices\": [0]", "\"devices\": 0", 10, "`0` at $.pipelines[0].stages[0].devices",
       "an array"},
      {"\"devices\": [0]", "\"devices\": [2147483648]", 10,
       "`2147483648` at $.pipelines[0].stages[0].devices[0]", "an integer from 0 to 2147483647"},
      {"\"devices\": [0]", "\"devices\": [0], \"axis\": \"time\"", 10,
       "`\"time\"` at $.pipelines[0].stages[0].axis",
       "one of \"data\", \"samples\", \"shard\", \"tensor\", \"context\", \"expert\""},
      {"\"devices\": [0]", "\"devices\": [0], \"memory\": \"forget\"", 10,
       "`\"forget\"` at $.pipelines[0].stages[0].memory",
       "one of \"keep\", \"recompute\", \"offload\""},
      {"\"micro_batches\": [[0, 1]]", "\"micro_batches\": {}", 11,
       "an object at $.pipelines[0].micro_batches", "an array"},
      {"{\"name\": \"gpipe\"}", "\"gpipe\"", 14, "`\"gpipe\"` at $.schedule", "an object"},
      {"{\"name\": \"gpipe\"}", "{}", 14, "an object without them at $.schedule",
       "one of \"name\", \"actions\", \"policy\""},
      {"\"name\": \"gpipe\"", "\"name\": \"quickpipe\"", 14, "`\"quickpipe\"` at $.schedule.name",
       "the name of a schedule, such as \"1f1b\""},
      {"\"name\": \"gpipe\"", "\"name\": \"gpipe\", \"in_flight\": 0", 14,
       "`0` at $.schedule.in_flight", "an integer from 1 to 1000000000"},
      {"\"name\": \"gpipe\"", "\"name\": \"gpipe\", \"policy\": \"fifo\"", 14,
       "the unknown key \"policy\" at $.schedule", ""},
      {"\"name\": \"gpipe\"", "\"policy\": \"lifo\"", 14, "`\"lifo\"` at $.schedule.policy",
       "one of \"fifo\", \"priority\", \"lrtf\", \"steal\"; did you mean fifo?"},
      {"\"name\": \"gpipe\"", "\"actions\": [[\"0F0\", 1]]", 14, "`1` at $.schedule.actions[0][1]",
       "a string"},
      {"\"name\": \"gpipe\"}", "\"name\": \"gpipe\"}, \"reduction\": \"sloppy\"", 14,
       "`\"sloppy\"` at $.reduction", "one of \"exact\", \"fast\""},
      {"\"name\": \"gpipe\"}", "\"name\": \"gpipe\"}, \"weight_versions\": \"new\"", 14,
       "`\"new\"` at $.weight_versions",
       "one of \"sync\", \"stash\", \"2bw\", \"latest\", \"predicted\""},
      {"\"name\": \"gpipe\"}", "\"name\": \"gpipe\"}, \"provenance\": {\"seed\": 1}", 14,
       "`1` at $.provenance.seed", "a string"},
      {"\"name\": \"gpipe\"}", "\"name\": \"gpipe\"}, \"cache_frozen_prefix\": 1", 14,
       "`1` at $.cache_frozen_prefix", "`true` or `false`"},
  };
  for (const BadInput& input : inputs) {
    SCOPED_TRACE(input.from + " -> " + input.to);
    std::string text = kShortest;
    const std::size_t place = text.find(input.from);
    ASSERT_NE(place, std::string::npos);
    text.replace(place, input.from.size(), input.to);
    try {
      parse_plan(text, "plan.json");
      ADD_FAILURE() << "accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "plan.json");
      EXPECT_EQ(error.line(), input.line);
      EXPECT_EQ(error.found(), input.found);
      // The JSON reader's own tests check the list of known keys.
      if (!input.expected.empty()) {
        EXPECT_EQ(error.expected(), input.expected);
      }
    }
  }
}

TEST(PlanJson, BadMasksAndActionsCarryTheirLine) {
  for (const auto& [from, to, line] : {std::tuple{"\"mask\": \"11\"", "\"mask\": \"1x\"", 7},
                                       {"\"mask\": \"11\"", "\"mask\": \"\"", 7},
                                       {"\"name\": \"gpipe\"", "\"actions\": [[\"0X0\"]]", 14},
                                       {"\"name\": \"gpipe\"", "\"actions\": [[\"0F\"]]", 14}}) {
    SCOPED_TRACE(to);
    std::string text = kShortest;
    text.replace(text.find(from), std::string(from).size(), to);
    try {
      parse_plan(text, "plan.json");
      ADD_FAILURE() << "accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "plan.json");
      EXPECT_EQ(error.line(), line);
    }
  }
}

}  // namespace
}  // namespace frazil
