// Tests `frazil plan --forecast` as a process.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "planner/plan/plan_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

class ForecastVerb : public testing::Test {
 protected:
  void SetUp() override {
    const ModelProfile profile =
        make_chain(8, microseconds{100}, microseconds{100}, microseconds{100});
    write_model_profile(profile, folder.path("model.json"));
    write_cluster(
        make_uniform_cluster(4, Bytes{30'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}}),
        folder.path("cluster.json"));
    trace.model_hash = model_hash(profile);
    trace.blocks.assign(8, "block");
    trace.steps = 10'000;
    FreezeEvent& event = trace.events.emplace_back();
    event.step = 100;
    event.what = MaskEvent{FreezeMask::parse("00000011", "test", 1)};
    write_freeze_trace(trace, folder.path("trace.jsonl"));
  }

  Outcome plan(const std::string& flags) const {
    return folder.run("plan", "--profile model.json --cluster cluster.json --batch 8 " + flags);
  }

  FreezeTrace trace;
  ProgramFolder folder{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ForecastVerb, TellsWhichPlanToHoldWhen) {
  const Outcome outcome = plan("--forecast trace.jsonl --switch-time 5ms");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("transition at step 100: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("paid back after "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("without a forecast"), std::string::npos) << outcome.out;
}

TEST_F(ForecastVerb, WritesEachPlanThatIsHeldUnderTheMaskOfItsFirstStep) {
  std::filesystem::create_directory(folder.path("plans"));
  const Outcome outcome =
      plan("--forecast trace.jsonl --switch-time 5ms --clip --out plans/p.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Plan first = read_plan(folder.path("plans/p.0.json"));
  const Plan second = read_plan(folder.path("plans/p.100.json"));
  EXPECT_EQ(first.mask.text(), "11111111");
  EXPECT_EQ(second.mask.text(), "00000011");
  EXPECT_NE(first.pipelines, second.pipelines);
  const std::string files = "--profile model.json --cluster cluster.json --plan plans/p.100.json";
  const std::string other = "the plan was found for a step with --clip\n";
  EXPECT_NE(folder.run("simulate", files).out.find(other), std::string::npos);
  EXPECT_EQ(folder.run("simulate", files + " --clip").out.find(other), std::string::npos);
}

TEST_F(ForecastVerb, NeverWritesAPlanOverWhatItRead) {
  write_freeze_trace(trace, folder.path("trace.100.jsonl"));
  const std::string before = read_text_file(folder.path("trace.100.jsonl"));
  const Outcome outcome = plan("--forecast trace.100.jsonl --switch-time 5ms --out trace.jsonl");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("trace.100.jsonl"), std::string::npos) << outcome.err;
  EXPECT_EQ(read_text_file(folder.path("trace.100.jsonl")), before);
  EXPECT_FALSE(std::filesystem::exists(folder.path("trace.0.jsonl")));
}

TEST_F(ForecastVerb, AnswersInJsonWithTheSameBytesEachTime) {
  const Outcome outcome = plan("--forecast trace.jsonl --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("segments").items().size(), 2U);
  EXPECT_EQ(answer.required("switches").items().size(), 1U);
  EXPECT_GT(answer.required("total_ns").integer(0, kLargestQuantity), 0);
  EXPECT_EQ(plan("--forecast trace.jsonl --json").out, outcome.out);
}

TEST_F(ForecastVerb, NamesWhatIsCachedWhenAndWhatFillingCosts) {
  const std::string cached = "--forecast trace.jsonl --samples 8000 --cache-disk 1MB";
  const Outcome outcome = plan(cached);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // A layer of the chain puts out 10 bytes a sample, so 8000 samples take 78.13 KiB at any depth.
  EXPECT_NE(
      outcome.out.find("fill at step 100: layers 0-5 on disk, 78.13 KiB, from the input; 1000 "
                       "steps take "),
      std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("nothing cached"), std::string::npos) << outcome.out;
  JsonFields answer(parse_json(plan(cached + " --json").out, "answer"));
  const auto fills = answer.required("fills").items();
  ASSERT_EQ(fills.size(), 1U);
  JsonFields fill(fills[0]);
  EXPECT_EQ(fill.required("bytes").integer(0, kLargestQuantity), 80'000);
  EXPECT_EQ(fill.required("filling_steps").integer(0, kLargestQuantity), 1000);
  EXPECT_LT(answer.required("total_ns").integer(0, kLargestQuantity),
            answer.required("nothing_cached_ns").integer(0, kLargestQuantity));
  // Eight micro-batches with a latency of 500 us each take longer than a step.
  const Outcome slow = plan(cached + " --cache-disk-latency 500us");
  EXPECT_NE(slow.out.find("no cache pays"), std::string::npos) << slow.out;
  const Outcome small = plan("--forecast trace.jsonl --samples 8000 --cache-disk 79kB");
  EXPECT_NE(small.out.find("no cache fits: the smallest takes 78.13 KiB\n"), std::string::npos)
      << small.out;
  EXPECT_EQ(plan("--forecast trace.jsonl").out.find("cache"), std::string::npos);
  EXPECT_EQ(outcome.out.find("share none"), std::string::npos) << outcome.out;
  Cluster cluster =
      make_uniform_cluster(4, Bytes{30'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  cluster.hosts.push_back({"other", Bytes{}});
  cluster.devices[3].host = HostId{1};
  write_cluster(cluster, folder.path("cluster.json"));
  EXPECT_NE(plan(cached).out.find("pipelines on 2 hosts share none"), std::string::npos);
  EXPECT_NE(plan(cached + " --json").out.find("\"one_cache_for_hosts\": 2"), std::string::npos);
}

// From the middle on device 3 takes 20 times as long, and layer 2 twice. Each segment's step is
// that of the plan held there, simulated on files that say so.
TEST_F(ForecastVerb, PricesStepsByTheCostsThatTheRunMeasured) {
  const DriftEvent drift{.change = DriftChange::kReplanned,
                         .devices_ppm = {1'000'000, 1'000'000, 1'000'000, 20'000'000},
                         .layers_ppm = {1'000'000, 1'000'000, 2'000'000, 1'000'000, 1'000'000,
                                        1'000'000, 1'000'000, 1'000'000},
                         .reason = "device 3 takes 20.00 x"};
  trace.events.push_back({5000, drift});
  write_freeze_trace(trace, folder.path("trace.jsonl"));
  std::filesystem::create_directory(folder.path("plans"));
  const std::string asked = "--forecast trace.jsonl --switch-time 5ms ";
  ASSERT_EQ(plan(asked + "--out plans/p.json").code, 0);
  ModelProfile slow = read_model_profile(folder.path("model.json"));
  for (CostSample& cost : slow.layers[2].costs) {
    for (Duration* const time : {&cost.forward, &cost.forward_frozen, &cost.backward_input,
                                 &cost.backward_weight, &cost.backward_weight_alone}) {
      *time *= 2;
    }
  }
  write_model_profile(slow, folder.path("slow_model.json"));
  Cluster row =
      make_uniform_cluster(4, Bytes{30'000}, {microseconds{2}, BytesPerSecond{1'000'000'000}});
  row.devices[3].time_ppm = 20'000'000;
  write_cluster(row, folder.path("slow_cluster.json"));
  JsonFields answer(parse_json(plan(asked + "--json").out, "answer"));
  std::int64_t total = 0;
  for (const JsonCursor& change : answer.required("switches").items()) {
    total += JsonFields(change).required("total_ns").integer(0, kLargestQuantity);
  }
  std::vector<std::int64_t> begins;
  std::filesystem::path held;
  for (const JsonCursor& each : answer.required("segments").items()) {
    JsonFields segment(each);
    const std::int64_t step = segment.required("step").integer(0, 10'000);
    const auto file = folder.path("plans/p." + std::to_string(step) + ".json");
    if (std::filesystem::exists(file)) held = file;
    Plan plan = read_plan(held);
    plan.mask = FreezeMask::parse(segment.required("mask").text(), "test", 1);
    write_plan(plan, folder.path("masked.json"));
    const bool is_slow = step >= 5000;
    EXPECT_EQ(segment.optional("measured_costs").has_value(), is_slow);
    const Outcome simulated =
        folder.run("simulate", std::string("--plan masked.json --json --profile ") +
                                   (is_slow ? "slow_model.json --cluster slow_cluster.json"
                                            : "model.json --cluster cluster.json"));
    ASSERT_EQ(simulated.code, 0) << simulated.err;
    const std::int64_t takes = JsonFields(parse_json(simulated.out, "step"))
                                   .required("makespan_ns")
                                   .integer(0, kLargestQuantity);
    EXPECT_EQ(segment.required("step_ns").integer(0, kLargestQuantity), takes);
    total += takes * segment.required("steps").integer(0, 10'000);
    begins.push_back(step);
  }
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 100, 5000}));
  EXPECT_EQ(answer.required("total_ns").integer(0, kLargestQuantity), total);
  EXPECT_TRUE(std::filesystem::exists(folder.path("plans/p.5000.json"))) << "another plan pays";
  const std::string said =
      "\nnote: from step 5000 on device 3 takes 20.00 x, layer 2 takes 2.00 x, as the run measured "
      "beside its profile and cluster; that is hindsight, not known before\n";
  const Outcome text = plan(asked);
  EXPECT_NE(text.out.find(said), std::string::npos) << text.out;
}

TEST_F(ForecastVerb, AnswersTheSameBytesIfNothingHasDrifted) {
  const std::string before = plan("--forecast trace.jsonl --json").out;
  const std::vector<std::int64_t> million(4, 1'000'000);
  trace.events.push_back({5000, DriftEvent{.devices_ppm = million,
                                           .layers_ppm = std::vector<std::int64_t>(8, 1'000'000)}});
  write_freeze_trace(trace, folder.path("trace.jsonl"));
  EXPECT_EQ(plan("--forecast trace.jsonl --json").out, before);
  trace.events.back().what = DriftEvent{.devices_ppm = {1'000'000}, .layers_ppm = million};
  write_freeze_trace(trace, folder.path("trace.jsonl"));
  const Outcome refused = plan("--forecast trace.jsonl");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("trace.jsonl:3: found a drift of 1 device, expected one of the "
                             "cluster's 4, or a trace without lines of kind x-drift"),
            std::string::npos)
      << refused.err;
}

TEST_F(ForecastVerb, RefusesInOneSentence) {
  struct Row {
    std::string flags;
    int code;
    std::string said;
  };
  const std::vector<Row> rows = {
      {"--forecast trace.jsonl --mask 11111111", 2, "--mask"},
      {"--forecast trace.jsonl --out ''", 2, "--out"},
      {"--forecast trace.jsonl --explain", 2, "--explain"},
      {"--forecast none.jsonl", 2, "none.jsonl"},
      {"--forecast model.json", 2,
       "model.json:1: found no JSON object that ends on the line, expected a freeze trace, an "
       "object on each line"},
      {"--forecast trace.jsonl --gap 5", 2, "--gap"},
      {"--forecast trace.jsonl --noise 5", 2,
       "found --noise with --forecast, expected none, for plans over a forecast are chosen by "
       "their total time alone"},
      {"--planner pipe-bd --micro-batch 2", 2, "it chooses its own"},
      {"--forecast trace.jsonl --plans-per-mask 0", 2, "--plans-per-mask"},
      {"--forecast trace.jsonl --switch-time 5", 2, "--switch-time"},
      {"--forecast trace.jsonl --decide-every -1", 2, "--decide-every"},
      {"--plans-per-mask 2", 2, "--plans-per-mask"},
      {"--forecast trace.jsonl --cache", 2, "--cache"},
      {"--forecast trace.jsonl --samples 5", 2, "--samples without"},
      {"--forecast trace.jsonl --cache-memory 1MB", 2, "without --samples"},
      {"--forecast trace.jsonl --samples 0 --cache-memory 1MB", 2, "--samples"},
      {"--forecast trace.jsonl --samples 9 --cache-memory 0B", 2,
       "found --cache-memory 0B, expected some room, or no such flag"},
      {"--forecast trace.jsonl --samples 9 --cache-memory 1MB --cache-disk 0MB", 2,
       "found --cache-disk 0MB"},
      {"--forecast trace.jsonl --samples 5 --cache-disk 1", 2, "--cache-disk"},
      {"--forecast trace.jsonl --cache-disk-latency 1ms", 2, "without --cache-disk"},
      {"--cache-memory 1MB", 2, "--cache-memory without --forecast"},
      {"--forecast trace.jsonl --max-stages 1", 3,
       "under the mask 11111111 no plan is feasible; the nearest by the memory of "}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.flags);
    const Outcome outcome = plan(row.flags);
    EXPECT_EQ(outcome.code, row.code) << outcome.err;
    EXPECT_NE(outcome.err.find(row.said), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(folder.count_files(), 3U);
  }
}

TEST_F(ForecastVerb, RefusesATraceOfAnotherRun) {
  const auto refused = [&](const std::string& said) {
    write_freeze_trace(trace, folder.path("trace.jsonl"));
    const Outcome outcome = plan("--forecast trace.jsonl");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  };
  trace.batch_size = 16;
  refused("trace.jsonl:1: found steps of 16 samples, expected steps of --batch 8");
  trace.batch_size = 8;
  trace.model_hash = "feed";
  refused("trace.jsonl:1: found a trace of the model feed, expected one of the profile's, ");
  trace.model_hash.clear();
  write_freeze_trace(trace, folder.path("trace.jsonl"));
  EXPECT_EQ(plan("--forecast trace.jsonl").code, 0) << "it names no model";
}

TEST_F(ForecastVerb, RefusesATraceOfAnotherModel) {
  write_model_profile(make_chain(6, microseconds{1}, microseconds{1}, microseconds{1}),
                      folder.path("model.json"));
  const Outcome outcome = plan("--forecast trace.jsonl");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("trace.jsonl:1: found 8 blocks, expected the model's 6"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace frazil
