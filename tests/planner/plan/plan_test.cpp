#include "planner/plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/actions/validate_plan.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"
#include "tests/planner/support/shared_plans.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

const ModelProfile& model() {
  static const ModelProfile profile =
      make_chain(8, milliseconds{1}, milliseconds{1}, milliseconds{1});
  return profile;
}

const Cluster& cluster() {
  static const Cluster four = make_uniform_cluster(4, Bytes{1'000'000}, {});
  return four;
}

// Makes two replicas of two stages with micro-batches 0-2 and 3-4 of 8 samples, the last one of 6.
Plan sample_plan() {
  Plan plan;
  plan.model_hash = model_hash(model());
  plan.batch_size = 38;
  plan.micro_batch_size = 8;
  plan.mask = FreezeMask::all_active(8);
  plan.pipelines = {make_pipeline(8, {LayerId{5}}, {DeviceId{0}, DeviceId{1}}, interval(0, 2)),
                    make_pipeline(8, {LayerId{5}}, {DeviceId{2}, DeviceId{3}}, interval(3, 4))};
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kOneForwardOneBackward};
  return plan;
}

TEST(Plan, LastMicroBatchOfABatchMayBeShort) {
  Plan plan = sample_plan();
  EXPECT_EQ(plan.micro_batches(), 5);
  EXPECT_EQ(samples_in(plan, MicroBatchId{0}), 8);
  EXPECT_EQ(samples_in(plan, MicroBatchId{4}), 6);
  plan.batch_size = 40;
  EXPECT_EQ(plan.micro_batches(), 5);
  EXPECT_EQ(samples_in(plan, MicroBatchId{4}), 8);
  plan.batch_size = 3;
  EXPECT_EQ(plan.micro_batches(), 1);
  EXPECT_EQ(samples_in(plan, MicroBatchId{0}), 3);
}

TEST(Plan, SamplesOfAllMicroBatchesAddUpToTheBatch) {
  Plan plan;
  for (plan.batch_size = 1; plan.batch_size <= 30; ++plan.batch_size) {
    for (plan.micro_batch_size = 1; plan.micro_batch_size <= 12; ++plan.micro_batch_size) {
      int sum = 0;
      for (int m = 0; m < plan.micro_batches(); ++m) sum += samples_in(plan, MicroBatchId{m});
      EXPECT_EQ(sum, plan.batch_size);
    }
  }
}

TEST(Plan, EveryScheduleHasItsOwnName) {
  std::set<std::string_view> names;
  for (const ScheduleFacts& facts : all_schedules()) {
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name;
    EXPECT_EQ(schedule_name(facts.kind), facts.name);
    EXPECT_EQ(find_schedule(facts.name), facts.kind);
  }
  EXPECT_EQ(find_schedule("1f1b-2"), std::nullopt);
  EXPECT_EQ(find_schedule(""), std::nullopt);
}

TEST(Plan, AScheduleIsFoundByPytorchsNameInAnyCase) {
  const std::vector<std::pair<std::string_view, ScheduleKind>> names = {
      {"GPipe", ScheduleKind::kGpipe},
      {"1F1B", ScheduleKind::kOneForwardOneBackward},
      {"Interleaved1F1B", ScheduleKind::kInterleaved},
      {"LoopedBFS", ScheduleKind::kLoopedBfs},
      {"InterleavedZeroBubble", ScheduleKind::kInterleavedZb},
      {"ZBV", ScheduleKind::kZbV},
      {"ZBVZeroBubble", ScheduleKind::kZbV},
      {"DualPipeV", ScheduleKind::kDualPipeV}};
  for (const auto& [name, kind] : names) {
    EXPECT_EQ(find_schedule(name), kind) << name;
    EXPECT_EQ(find_schedule("Schedule" + std::string(name)), kind) << name;
  }
  EXPECT_EQ(find_schedule("schedule"), std::nullopt);
}

TEST(Plan, NoNameIsThatOfTwoSchedules) {
  for (const std::string_view name : all_schedule_names()) {
    const auto kind = find_schedule(name);
    ASSERT_TRUE(kind.has_value()) << name;
    const ScheduleFacts& facts = facts_of(*kind);
    EXPECT_TRUE(facts.name == name || facts.aliases[0] == name || facts.aliases[1] == name);
  }
}

TEST(Plan, SummaryTellsShapeScheduleMicroBatchesAndCut) {
  Plan plan = sample_plan();
  EXPECT_EQ(summarize(plan),
            "2 stages x 2 pipelines, 1f1b, 5 micro-batches of 8, the last of 6, cut 5");
  plan.pipelines[1] = make_pipeline(8, {LayerId{4}}, {DeviceId{2}, DeviceId{3}}, interval(3, 4));
  EXPECT_EQ(summarize(plan),
            "2 stages x 2 pipelines, 1f1b, 5 micro-batches of 8, the last of 6, cut 5 | cut 4");
  plan.pipelines[1] = make_pipeline(8, {}, {DeviceId{2}}, interval(3, 4));
  EXPECT_EQ(summarize(plan),
            "2+1 stages in 2 pipelines, 1f1b, 5 micro-batches of 8, the last of 6, cut 5 | no cut");
  plan.pipelines.erase(plan.pipelines.begin());
  plan.batch_size = 8;
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  EXPECT_EQ(summarize(plan), "1 stage x 1 pipeline, gpipe, 1 micro-batch of 8");
  plan.pipelines = {make_pipeline(8, {LayerId{2}, LayerId{5}},
                                  {DeviceId{0}, DeviceId{1}, DeviceId{2}}, interval(0, 0))};
  plan.schedule = NamedSchedule{.in_flight = 8};
  EXPECT_EQ(summarize(plan),
            "3 stages x 1 pipeline, 1f1b with 8 in flight, 1 micro-batch of 8, cuts 2 5");
}

TEST(Plan, SummaryTellsWhereStagesDoNotKeepWhatTheyComputed) {
  Plan plan = sample_plan();
  const std::string before = "2 stages x 2 pipelines, 1f1b, 5 micro-batches of 8, the last of 6";
  plan.pipelines[0].stages[1].memory = MemoryPolicy::kRecompute;
  EXPECT_EQ(summarize(plan), before + ", recompute in 1 of 4 stages, cut 5");
  plan.pipelines[1].stages[1].memory = MemoryPolicy::kOffload;
  EXPECT_EQ(summarize(plan),
            before + ", recompute in 1 of 4 stages, offload in 1 of 4 stages, cut 5");
  for (Pipeline& pipeline : plan.pipelines) {
    for (Stage& stage : pipeline.stages) stage.memory = MemoryPolicy::kRecompute;
  }
  EXPECT_EQ(summarize(plan), before + ", recompute, cut 5");
}

TEST(Plan, MakePipelineGivesEveryStageItsLayersAndDevice) {
  const Pipeline pipeline = make_pipeline(8, {LayerId{2}, LayerId{5}},
                                          {DeviceId{3}, DeviceId{0}, DeviceId{1}}, interval(1, 4));
  ASSERT_EQ(pipeline.stages.size(), 3U);
  EXPECT_EQ(pipeline.stages[0].layers, (std::vector<LayerRange>{{LayerId{0}, LayerId{1}}}));
  EXPECT_EQ(pipeline.stages[1].layers, (std::vector<LayerRange>{{LayerId{2}, LayerId{4}}}));
  EXPECT_EQ(pipeline.stages[2].layers, (std::vector<LayerRange>{{LayerId{5}, LayerId{7}}}));
  EXPECT_EQ(pipeline.stages[0].devices, std::vector<DeviceId>{DeviceId{3}});
  EXPECT_EQ(pipeline.micro_batches, std::vector<MicroBatches>{interval(1, 4)});
  EXPECT_TRUE(make_pipeline(8, {}, {DeviceId{0}}, interval(4, 3)).micro_batches.empty());
}

TEST(Plan, AcceptsWhatIsWellFormed) {
  EXPECT_NO_THROW(validate(sample_plan(), {model(), cluster()}, "plan.json"));
  Plan several_intervals = sample_plan();
  several_intervals.pipelines[0].micro_batches = {interval(0, 1), interval(4, 4)};
  several_intervals.pipelines[1].micro_batches = {interval(2, 3)};
  EXPECT_NO_THROW(validate(several_intervals, {model(), cluster()}, "plan.json"));
  Plan idle_owner = sample_plan();
  idle_owner.pipelines[0].micro_batches = {interval(0, 4)};
  idle_owner.pipelines[1].micro_batches = {};
  EXPECT_NO_THROW(validate(idle_owner, {model(), cluster()}, "plan.json"));
  Plan shared_stage = sample_plan();
  shared_stage.pipelines[0].stages[0].devices = {DeviceId{0}, DeviceId{2}};
  EXPECT_NO_THROW(validate(shared_stage, {model(), cluster()}, "plan.json"));
}

TEST(Plan, StagesNeedNotBeConsecutiveLayersToBeConvex) {
  // Two towers, layers 0-3 and 4-6, meet in layer 7.
  ModelProfile towers = model();
  towers.edges.clear();
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 3}, {3, 7}, {4, 5}, {5, 6}, {6, 7}}) {
    towers.edges.push_back({LayerId{from}, LayerId{to}, EdgeKind::kGradient, {Bytes{10}}});
  }
  Plan plan = sample_plan();
  plan.model_hash = model_hash(towers);
  for (Pipeline& pipeline : plan.pipelines) {
    pipeline.stages[0].layers = {{LayerId{0}, LayerId{1}}, {LayerId{4}, LayerId{5}}};
    pipeline.stages[1].layers = {{LayerId{2}, LayerId{3}}, {LayerId{6}, LayerId{7}}};
  }
  EXPECT_NO_THROW(validate(plan, {towers, cluster()}, "plan.json"));
  EXPECT_EQ(
      summarize(plan),
      "2 stages x 2 pipelines, 1f1b, 5 micro-batches of 8, the last of 6, layers 0-1+4-5 2-3+6-7");
  // The same stages of a chain would read from each other.
  plan.model_hash = model_hash(model());
  EXPECT_THROW(validate(plan, {model(), cluster()}, "plan.json"), InputError);
}

TEST(Plan, ByAProfileInAnotherPrecisionIsRefused) {
  const Plan plan = sample_plan();
  ModelProfile narrow = model();
  narrow.precision = Precision::kBf16;
  try {
    validate(plan, {narrow, cluster()}, "plan.json");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "a plan by a profile of chain in fp32 at $.model_hash");
    EXPECT_EQ(error.expected(), "one by a profile in bf16");
  }
}

struct Fault {
  std::string sentence;
  std::function<void(Plan&)> plant;
};

TEST(Plan, NamesEveryFaultInOneSentence) {
  const std::string hash = model_hash(model());
  const std::vector<Fault> faults{
      {"found \"0\" at $.model_hash, expected \"" + hash + "\", the hash of model chain",
       [](Plan& p) { p.model_hash = "0"; }},
      {"found 0 at $.batch_size, expected at least 1 sample", [](Plan& p) { p.batch_size = 0; }},
      {"found -1 at $.micro_batch_size, expected at least 1 sample",
       [](Plan& p) { p.micro_batch_size = -1; }},
      {"found 2000000000 micro-batches at $.micro_batch_size, expected at most 1000000",
       [](Plan& p) {
         p.batch_size = 2'000'000'000;
         p.micro_batch_size = 1;
       }},
      {"found 7 bits at $.mask, expected one bit for each of the model's 8 blocks",
       [](Plan& p) { p.mask = FreezeMask::all_active(7); }},
      {"found no pipeline at $.pipelines, expected at least one",
       [](Plan& p) { p.pipelines.clear(); }},
      {"found no stage at $.pipelines[1], expected at least one stage",
       [](Plan& p) { p.pipelines[1].stages.clear(); }},
      {"found no layers at $.pipelines[0].stages[1], expected at least one range of layers",
       [](Plan& p) { p.pipelines[0].stages[1].layers.clear(); }},
      {"found [5, 8] at $.pipelines[0].stages[1].layers[0], expected [first, last] within 0 to 7",
       [](Plan& p) { p.pipelines[0].stages[1].layers[0].last = LayerId{8}; }},
      {"found [5, 4] at $.pipelines[0].stages[1].layers[0], expected [first, last] within 0 to 7",
       [](Plan& p) { p.pipelines[0].stages[1].layers[0].last = LayerId{4}; }},
      {"found [6, 7] at $.pipelines[0].stages[1].layers[1], expected [first, last] within 7 to 7",
       [](Plan& p) {
         p.pipelines[0].stages[1].layers = {{LayerId{5}, LayerId{6}}, {LayerId{6}, LayerId{7}}};
       }},
      {"found no device at $.pipelines[0].stages[0], expected at least one device",
       [](Plan& p) { p.pipelines[0].stages[0].devices.clear(); }},
      {"found device 4 at $.pipelines[0].stages[0].devices[0], expected a device from 0 to 3",
       [](Plan& p) { p.pipelines[0].stages[0].devices = {DeviceId{4}}; }},
      {"found device 2 again at $.pipelines[0].stages[0].devices[1], expected each device once per "
       "stage",
       [](Plan& p) {
         p.pipelines[0].stages[0].devices = {DeviceId{2}, DeviceId{2}};
       }},
      {"found layer 4 in stages 0 and 1 at $.pipelines[0], expected every layer in one stage",
       [](Plan& p) { p.pipelines[0].stages[1].layers[0].first = LayerId{4}; }},
      {"found layer 5 in no stage at $.pipelines[0], expected every layer in one stage",
       [](Plan& p) { p.pipelines[0].stages[1].layers[0].first = LayerId{6}; }},
      {"found layer 2 of stage 1 feeding layer 3 of stage 0 at $.pipelines[0], expected convex "
       "stages, each after the stages it reads from",
       [](Plan& p) {
         std::swap(p.pipelines[0].stages[0].layers, p.pipelines[0].stages[1].layers);
         p.pipelines[0].stages[0].layers = {{LayerId{3}, LayerId{7}}};
         p.pipelines[0].stages[1].layers = {{LayerId{0}, LayerId{2}}};
       }},
      {"found [0, 5] at $.pipelines[0].micro_batches[0], expected [first, last] within 0 to 4",
       [](Plan& p) { p.pipelines[0].micro_batches = {interval(0, 5)}; }},
      {"found [1, 2] at $.pipelines[0].micro_batches[1], expected [first, last] within 2 to 4",
       [](Plan& p) {
         p.pipelines[0].micro_batches = {interval(0, 1), interval(1, 2)};
       }},
      {"found micro-batch 2 in several pipelines at $.pipelines, expected every micro-batch in one "
       "pipeline",
       [](Plan& p) { p.pipelines[1].micro_batches = {interval(2, 4)}; }},
      {"found micro-batch 3 in no pipeline at $.pipelines, expected every micro-batch in one "
       "pipeline",
       [](Plan& p) { p.pipelines[1].micro_batches = {interval(4, 4)}; }},
      {"found micro-batch 4 in no pipeline at $.pipelines, expected all 5 micro-batches of the "
       "batch",
       [](Plan& p) { p.pipelines[1].micro_batches = {interval(3, 3)}; }},
      {"found 0 at $.schedule.in_flight, expected at least 1",
       [](Plan& p) { p.schedule = NamedSchedule{.in_flight = 0}; }},
      {"found 0 at $.schedule.chunks, expected at least 1",
       [](Plan& p) { p.schedule = NamedSchedule{.chunks = 0}; }},
      {"found 1 list at $.schedule.actions, expected one list for each of the cluster's 4 devices",
       [](Plan& p) { p.schedule = ExplicitSchedule{{{}}}; }},
      {"found no 0F0 on any device, expected every owned micro-batch in every stage",
       [](Plan& p) {
         p.schedule = ExplicitSchedule{{{}, {}, {}, {}}};
       }},
  };
  for (const Fault& fault : faults) {
    Plan plan = sample_plan();
    fault.plant(plan);
    try {
      validate(plan, {model(), cluster()}, "plan.json");
      ADD_FAILURE() << "accepted although: " << fault.sentence;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), "plan.json: " + fault.sentence);
      EXPECT_EQ(error.line(), 0);
    }
  }
}

// A plan file has a device's actions on a line of their own, so a fault in them has that line.
TEST(Plan, FaultsFoundAfterReadingCarryTheLine) {
  const ProgramFolder folder("plan-lines");
  const auto fault_line = [&](const Plan& plan) {
    write_plan(plan, folder.path("plan.json"));
    try {
      validate(plan, {model(), cluster()}, "plan.json", lines_of(folder.path("plan.json")));
    } catch (const InputError& error) {
      return error.line();
    }
    return -1;
  };
  // Looks the line up in the plan written last.
  const auto line_with = [&](const std::string& text) {
    const std::string file = read_text_file(folder.path("plan.json"));
    const auto end = file.begin() + static_cast<std::ptrdiff_t>(file.find(text));
    return 1 + static_cast<int>(std::count(file.begin(), end, '\n'));
  };
  Plan plan = sample_plan();
  plan.pipelines.at(0).stages.at(1).devices = {DeviceId{77}};
  int line = fault_line(plan);
  EXPECT_EQ(line, line_with("\"devices\": [77]"));
  plan = sample_plan();
  plan.micro_batch_size = 0;
  line = fault_line(plan);
  EXPECT_EQ(line, line_with("\"micro_batch_size\""));
  plan = sample_plan();
  plan.schedule = ExplicitSchedule{{{}, {}, {parse_action("0F0")}, {}}};
  line = fault_line(plan);
  EXPECT_EQ(line, line_with("[\"0F0\"]"));
}

}  // namespace
}  // namespace frazil
