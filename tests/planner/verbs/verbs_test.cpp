// Tests the built programs as processes: answers, exit codes, and nothing written on failure.

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "planner/plan/plan_json.h"
#include "planner/plan/schedule_facts.h"
#include "planner/prediction/ranking.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// A folder of its own for each test, with a model and two clusters in it.
class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    write_model_profile(make_chain(4, microseconds(10), microseconds(10), microseconds(10)),
                        path("model.json"));
    write_cluster(make_uniform_cluster(2, Bytes{1'000'000}, {microseconds(5), {}}),
                  path("cluster.json"));
    write_cluster(make_uniform_cluster(2, Bytes{4'000}, {}), path("tight.json"));
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome run(const std::string& verb, const std::string& arguments) const {
    return folder_.run(verb, arguments);
  }
  std::size_t count_files() const { return folder_.count_files(); }

 private:
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

constexpr std::int64_t kMost = 1'000'000'000'000;
const std::string kTimes = " --forward 1ms --backward-input 1ms --backward-weight 1ms";

TEST_F(Verbs, SimulateAnswersAWhatIfInJson) {
  const Outcome outcome =
      run("simulate", "--stages 4 --micro-batches 8 --schedule 1f1b --hop 0.313ms --json" + kTimes);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("schedule").text(), "1f1b");
  EXPECT_EQ(answer.required("stages").integer(0, kMost), 4);
  EXPECT_EQ(answer.required("micro_batches").integer(0, kMost), 8);
  EXPECT_EQ(answer.required("makespan_ns").integer(0, kMost), 38'008'000);
  EXPECT_EQ(answer.required("span_ns").integer(0, kMost), 38'008'000);
  EXPECT_NEAR(answer.required("bubble").real(0, 1), 1 - 24.0 / 38.008, 1e-12);
  EXPECT_NEAR(answer.required("bubble_span").real(0, 1), 1 - 24.0 / 38.008, 1e-12);
  EXPECT_EQ(answer.required("peak_chunks").items()[0].integer(0, kMost), 4);
  EXPECT_EQ(answer.required("chunks").integer(0, kMost), 1);
  // The bound is 33 ms of work and 14 hops of 0.313 ms, because 1F1B holds p - s micro-batches on
  // stage s.
  EXPECT_EQ(answer.required("lower_bound_makespan_ns").integer(0, kMost), 37'382'000);
  EXPECT_EQ(answer.required("lower_bound_makespan_name").text(), "gradient-chain");
  EXPECT_EQ(answer.required("lower_bound_span_ns").integer(0, kMost), 37'382'000);
  EXPECT_EQ(answer.required("lower_bound_span_name").text(), "gradient-chain");
  // The same 24 ms on each device, however the work is cut, placed and ordered.
  EXPECT_EQ(answer.required("any_plan_at_least_ns").integer(0, kMost), 24'000'000);
  EXPECT_EQ(answer.required("any_plan_bound_name").text(), "total-work");
  EXPECT_NO_THROW(answer.finish());
}

TEST_F(Verbs, SimulateListsScheduleFamilies) {
  const Outcome outcome = run("simulate", "--schedule help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("gpipe"), std::string::npos);
  EXPECT_NE(outcome.out.find("1f1b"), std::string::npos);
}

TEST_F(Verbs, PlanListsTheFamiliesThatFlushAndTheSearch) {
  const Outcome outcome = run("plan", "--schedules help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.find(describe_schedules(/*synchronous_alone=*/true)), 0U);
  EXPECT_EQ(outcome.out.find("pipedream"), std::string::npos);
  EXPECT_NE(outcome.out.find("\nsearch "), std::string::npos);
}

TEST_F(Verbs, ExportNamesWhatItWroteAndSaysWhereItTookATimeForGranted) {
  const std::string what_if = "--stages 2 --micro-batches 2 --schedule 1f1b --out ";
  EXPECT_EQ(run("export", what_if + "step.svg --to svg").out,
            "wrote step.svg\nwithout times every action takes 1 ms\n");
  EXPECT_EQ(run("export", what_if + "step.svg --to svg" + kTimes).out, "wrote step.svg\n");
  EXPECT_EQ(run("export", what_if + "lists.csv --to pytorch-csv").out, "wrote lists.csv\n");
}

TEST_F(Verbs, TheBestPlanDoesNotDependOnHowManyRowsAreShown) {
  ModelProfile profile = make_chain(9, microseconds(10), microseconds(10), microseconds(10));
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    for (CostSample& cost : profile.layers[l].costs) cost.forward += microseconds(l * l % 7 * 4);
  }
  write_model_profile(profile, path("uneven.json"));
  write_cluster(make_uniform_cluster(4, Bytes{1'000'000}, {microseconds(3), {}}),
                path("four.json"));
  const std::string question = "--profile uneven.json --cluster four.json --batch 12 --out ";
  ASSERT_EQ(run("plan", question + "few.json --top 1").code, 0);
  ASSERT_EQ(run("plan", question + "many.json --top 200").code, 0);
  EXPECT_EQ(read_text_file(path("few.json")), read_text_file(path("many.json")));
}

TEST_F(Verbs, PlanEndsWithinTheGapThatIsAskedForAndSaysSo) {
  write_cluster(make_uniform_cluster(16, Bytes{1'000'000}, {microseconds(5), {}}),
                path("many.json"));
  const std::string question = "--profile model.json --cluster many.json --batch 64 --top 1 ";
  const auto answer = [&](const std::string& flags) { return run("plan", question + flags); };
  EXPECT_EQ(answer("").out.find("not looked at"), std::string::npos);
  const Outcome near = answer("--gap 60");
  ASSERT_EQ(near.code, 0) << near.err;
  EXPECT_NE(near.out.find(" not looked at; none takes less than "), std::string::npos) << near.out;
  EXPECT_EQ(answer("--gap 101").err,
            "frazil plan: command line: found --gap 101, expected a percentage from 0 to 100 with "
            "at most four decimals\n");
  EXPECT_EQ(answer("--gap 5 --planner uniform").code, 2);
  EXPECT_EQ(answer("--gap 5 --forecast trace.jsonl").code, 2);
}

TEST_F(Verbs, AMaskOfAnotherModelIsToldFromOneThatIsNone) {
  const std::string files = "--profile model.json --cluster cluster.json --batch 8 --mask ";
  EXPECT_EQ(run("plan", files + "000").err,
            "frazil plan: command line: found --mask 000, expected a bit for each of 4 blocks\n");
  EXPECT_EQ(run("plan", files + "0000").err,
            "frazil plan: command line: found mask \"0000\", expected a 0 or 1 per block, and a 1 "
            "for the last, which never freezes\n");
}

TEST_F(Verbs, PlanWritesAPlanThatSimulateTakes) {
  const Outcome planned =
      run("plan", "--profile model.json --cluster cluster.json --batch 8 --out plan.json --json");
  ASSERT_EQ(planned.code, 0) << planned.err;
  JsonFields ranking(parse_json(planned.out, "answer"));
  const std::vector<JsonCursor> feasible = ranking.required("feasible").items();
  ASSERT_FALSE(feasible.empty());
  const std::int64_t makespan =
      JsonFields(feasible.front()).required("makespan_ns").integer(1, kMost);

  const Outcome simulated = run("simulate",
                                "--plan plan.json --profile model.json --cluster cluster.json "
                                "--out timeline.csv --chrome trace.json --json");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  JsonFields answer(parse_json(simulated.out, "answer"));
  EXPECT_EQ(answer.required("makespan_ns").integer(1, kMost), makespan);
  EXPECT_TRUE(answer.required("fits").boolean());
  EXPECT_EQ(read_timeline_csv(path("timeline.csv")).devices, 2);
  EXPECT_NO_THROW(parse_json(read_text_file(path("trace.json")), "trace"));
}

TEST_F(Verbs, PlanCachesTheFrozenPrefixWhereItIsAsked) {
  const std::string flags =
      "--profile model.json --cluster cluster.json --batch 8 --mask 0011 --out plan.json";
  const Outcome without = run("plan", flags);
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(without.out.find("cached"), std::string::npos) << without.out;
  EXPECT_FALSE(read_plan(path("plan.json")).cache_frozen_prefix);
  const Outcome cached = run("plan", flags + " --cache");
  ASSERT_EQ(cached.code, 0) << cached.err;
  EXPECT_NE(cached.out.find(" cached "), std::string::npos) << cached.out;
  EXPECT_NE(cached.out.find("note: reading what is cached"), std::string::npos) << cached.out;
  const Plan plan = read_plan(path("plan.json"));
  EXPECT_TRUE(plan.cache_frozen_prefix);
  const ModelProfile profile = read_model_profile(path("model.json"));
  const Cluster cluster = read_cluster(path("cluster.json"));
  const Candidate judged = judge_plan(plan, {profile, cluster}, false);
  JsonFields answer(parse_json(run("plan", flags + " --cache --json").out, "answer"));
  JsonFields best(answer.required("feasible").items()[0]);
  EXPECT_EQ(best.required("makespan_ns").integer(1, kMost), judged.makespan.count());
  EXPECT_TRUE(best.required("cached_prefix").boolean());
}

TEST_F(Verbs, TablesForPeopleNameTheNumbers) {
  const Outcome planned =
      run("plan", "--profile model.json --cluster cluster.json --batch 8 --out plan.json --top 3");
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_NE(planned.out.find("makespan"), std::string::npos);
  EXPECT_NE(planned.out.find("plans fit on 2 devices"), std::string::npos);
  const Outcome simulated =
      run("simulate", "--plan plan.json --profile model.json --cluster tight.json");
  EXPECT_EQ(simulated.code, 3);
  EXPECT_EQ(simulated.err.find("frazil simulate: plan.json: the plan does not fit: device"), 0U)
      << simulated.err;
  EXPECT_NE(
      simulated.out.find("\nthis plan does not fit into memory, and train refuses it: device"),
      std::string::npos)
      << simulated.out;
  EXPECT_NE(simulated.out.find("samples/s"), std::string::npos);
}

TEST_F(Verbs, SimulateAsksAPlanFileWhatIf) {
  ASSERT_EQ(run("plan",
                "--profile model.json --cluster cluster.json --batch 8 --out plan.json "
                "--max-replicas 1 --micro-batch 1 --schedules 1f1b")
                .code,
            0);
  const std::string plan = "--plan plan.json --profile model.json --cluster cluster.json --json ";
  const auto makespan = [&](const std::string& arguments) {
    const Outcome outcome = run("simulate", plan + arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
    JsonFields answer(parse_json(outcome.out, "answer"));
    return answer.required("makespan_ns").integer(1, kMost);
  };
  EXPECT_EQ(makespan("--micro-batches 8 --schedule 1f1b"), makespan("--schedule 1f1b"));
  EXPECT_GT(makespan("--micro-batches 2"), makespan(""));
  EXPECT_LE(makespan("--schedule zb-h1"), makespan("--schedule 1f1b"));
  EXPECT_GT(makespan("--schedule 1f1b --in-flight 1"), makespan("--schedule 1f1b"));
  EXPECT_EQ(makespan("--schedule priority"), makespan("--schedule 1f1b"));
  EXPECT_EQ(makespan("--overlap-reductions"), makespan("")) << "one pipeline reduces nothing";
  EXPECT_EQ(run("simulate", plan + "--compare").code, 0);
  EXPECT_EQ(run("simulate", plan + "--schedule dualpipe").code, 3);
}

TEST_F(Verbs, ImportTakesAScheduleOfPytorchsIntoAPlan) {
  const std::string files = " --profile model.json --cluster cluster.json";
  ASSERT_EQ(
      run("plan",
          "--batch 4 --out plan.json --max-replicas 1 --micro-batch 1 --schedules 1f1b" + files)
          .code,
      0);
  write_text_file(path("gpipe.csv"),
                  "0F0,0F1,0F2,0F3,,,,0B0,0B1,0B2,0B3\n,1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3\n");
  const Outcome imported =
      run("import", "pytorch-csv gpipe.csv --plan plan.json --out imported.json --json" + files);
  ASSERT_EQ(imported.code, 0) << imported.err;
  const Outcome gpipe = run("simulate", "--plan plan.json --schedule gpipe --json" + files);
  const auto makespan = [](const std::string& text) {
    JsonFields answer(parse_json(text, "answer"));
    return answer.required("makespan_ns").integer(1, kMost);
  };
  EXPECT_EQ(makespan(imported.out), makespan(gpipe.out));
  EXPECT_EQ(makespan(run("simulate", "--plan imported.json --json" + files).out),
            makespan(gpipe.out));
  write_text_file(path("three.csv"), "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
  const Outcome refused =
      run("import", "pytorch-csv three.csv --plan plan.json --out other.json" + files);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("3 micro-batches"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(path("other.json")));
}

TEST_F(Verbs, PlanEndsWithThreeWhenNothingIsFeasible) {
  const std::size_t files = count_files();
  const Outcome outcome =
      run("plan", "--profile model.json --cluster tight.json --batch 8 --out plan.json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("no plan is feasible"), std::string::npos);
  EXPECT_NE(outcome.err.find("needs"), std::string::npos);
  EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size());
  EXPECT_EQ(count_files(), files);
}

TEST_F(Verbs, PlanExplainsItsChoiceAndSaysWhatWouldMakeAPlanFit) {
  const std::string question = "--profile model.json --batch 8 --cluster ";
  const Outcome told = run("plan", question + "cluster.json --explain");
  ASSERT_EQ(told.code, 0) << told.err;
  for (const std::string_view part : {"best  ", "runner-up", "bubble", "exposed communication",
                                      "lower bound", "candidates", "by bound"}) {
    EXPECT_NE(told.out.find(part), std::string::npos) << part << "\n" << told.out;
  }
  const Outcome json = run("plan", question + "cluster.json --explain --json");
  ASSERT_EQ(json.code, 0) << json.err;
  JsonFields answer(parse_json(json.out, "answer"));
  JsonFields explanation(answer.required("explanation"));
  EXPECT_EQ(explanation.required("best").items().size(), 2U);
  EXPECT_FALSE(explanation.required("rejected").items().empty());

  const Outcome tight = run("plan", question + "tight.json --json");
  EXPECT_EQ(tight.code, 3);
  EXPECT_NE(tight.err.find("it would fit with "), std::string::npos) << tight.err;
  JsonFields refusal(parse_json(tight.out, "answer"));
  EXPECT_FALSE(refusal.required("relief").items().empty());
}

// Makes a plan of one pipeline over both devices, with the given mode, batch and micro-batch size.
Plan two_stages(const ModelProfile& profile, ReductionMode mode, int batch, int size) {
  Plan plan;
  plan.model_hash = model_hash(profile);
  plan.batch_size = batch;
  plan.micro_batch_size = size;
  plan.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  plan.reduction = mode;
  plan.pipelines = {make_pipeline(static_cast<int>(profile.layers.size()), {LayerId{2}},
                                  {DeviceId{0}, DeviceId{1}},
                                  {MicroBatchId{0}, MicroBatchId{plan.micro_batches() - 1}})};
  return plan;
}

const std::string kPlanFiles = "--plan plan.json --profile model.json --cluster cluster.json ";

TEST_F(Verbs, WhatIsReadIsNeverWrittenOver) {
  const ModelProfile profile = read_model_profile(path("model.json"));
  write_plan(two_stages(profile, ReductionMode::kExact, 4, 1), path("plan.json"));
  const std::string before = read_text_file(path("plan.json"));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"simulate", kPlanFiles + "--out plan.json"},
      {"simulate", kPlanFiles + "--out t.csv --chrome ./model.json"},
      {"export", kPlanFiles + "--to svg --out plan.json"},
      {"export", kPlanFiles + "--to pytorch-csv --out ./plan.json"},
      {"import", "pytorch-csv s.csv " + kPlanFiles + "--out plan.json"},
      {"import", "pytorch-csv s.csv " + kPlanFiles + "--out s.csv"},
  };
  for (const auto& [verb, arguments] : bad) {
    SCOPED_TRACE(verb + " " + arguments);
    const std::size_t files = count_files();
    const Outcome outcome = run(verb, arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("expected another file"), std::string::npos) << outcome.err;
    EXPECT_EQ(read_text_file(path("plan.json")), before);
    EXPECT_EQ(count_files(), files);
  }
}

TEST_F(Verbs, RefusalsOfAPlanFileSayWhatItsPlanHas) {
  const ModelProfile profile = read_model_profile(path("model.json"));
  Plan plan = two_stages(profile, ReductionMode::kExact, 8, 2);
  write_plan(plan, path("plan.json"));
  const auto refusal = [&](const std::string& arguments) {
    const Outcome outcome = run("simulate", kPlanFiles + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    return outcome.err;
  };
  EXPECT_EQ(refusal("--overlap-reductions --bucket 1B"),
            "frazil simulate: command line: found --bucket for a plan of mode exact, expected mode "
            "fast, which alone has buckets\n");
  EXPECT_EQ(refusal("--schedule fifo --in-flight 2"),
            "frazil simulate: command line: found --in-flight with --schedule fifo, expected a "
            "schedule with fixed lists, for a dispatch policy goes by memory\n");
  plan.schedule = ExplicitSchedule{make_schedule(plan, 2).devices};
  write_plan(plan, path("plan.json"));
  EXPECT_EQ(refusal("--micro-batches 8"),
            "frazil simulate: command line: found --micro-batches 8 for a plan whose own lists "
            "have 4 micro-batches, expected --schedule too\n");
  EXPECT_EQ(run("simulate", kPlanFiles + "--micro-batches 4").code, 0);
  EXPECT_EQ(run("simulate", kPlanFiles + "--micro-batches 8 --schedule gpipe").code, 0);
}

TEST_F(Verbs, AnAnswerSaysWhatItRestsOn) {
  ModelProfile profile = read_model_profile(path("model.json"));
  write_plan(two_stages(profile, ReductionMode::kFast, 8, 3), path("plan.json"));
  const auto answer = [&](const std::string& arguments) {
    const Outcome outcome = run("simulate", kPlanFiles + arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
    return outcome.out;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string plain = answer("");
  EXPECT_TRUE(has(plain, "3 micro-batches of 3, the last of 2, cut 2\n")) << plain;
  EXPECT_FALSE(has(plain, "overlap"));
  EXPECT_FALSE(has(plain, "placeholders"));
  EXPECT_TRUE(has(answer("--overlap-reductions --bucket 2KiB"),
                  "reductions   overlap with backwards, in buckets of 2.00 KiB\n"));
  EXPECT_TRUE(has(answer("--overlap-reductions --json"), "\"reductions_overlap\":true"));
  EXPECT_TRUE(has(answer("--json"), "\"reductions_overlap\":false"));
  // A jitter of its own adds one line; rules for messages add theirs.
  const std::string jittered = answer("--jitter 2.5");
  EXPECT_TRUE(has(jittered, "+-2.5 %"));
  EXPECT_EQ(jittered.find("makespan"), jittered.rfind("makespan")) << jittered;
  EXPECT_TRUE(has(answer("--block-sends --buffers 1"), " with sends blocking, 1 buffer\n"));

  profile.provenance["rules"] =
      "boundary and stash bytes unknown (0): record with record_shapes=True";
  write_model_profile(profile, path("model.json"));
  const std::string note = "note: memory and messages are not known: bytes in the profile are";
  EXPECT_TRUE(has(answer(""), note));
  EXPECT_TRUE(has(run("plan", "--profile model.json --cluster cluster.json --batch 8").out, note));
}

TEST_F(Verbs, ARankingCountsWhatDoesNotFitApartFromWhatCannotBeMade) {
  const ModelProfile profile = read_model_profile(path("model.json"));
  write_plan(two_stages(profile, ReductionMode::kExact, 4, 1), path("plan.json"));
  const Outcome ranked = run("plan",
                             "--profile model.json --cluster cluster.json --batch 3 --max-replicas "
                             "1 --micro-batch 1 --schedules 1f1b,eager-1f1b,dualpipe --top 20 "
                             "--no-recompute");
  ASSERT_EQ(ranked.code, 0) << ranked.err;
  EXPECT_NE(ranked.out.find("5 plans fit on 2 devices, 0 do not, 2 cannot be made\n"),
            std::string::npos)
      << ranked.out;
  // Every row's columns stand where the header says, however long a name is.
  const std::size_t cuts = ranked.out.find("  cuts\n");
  std::istringstream lines(ranked.out);
  int rows = 0;
  int others = 0;  // rows that differ from the one above in the schedule's name alone
  for (std::string line; std::getline(lines, line) && !line.starts_with("5 plans");) {
    if (line.find("rank") != std::string::npos) continue;
    if (line.find(" or ") != std::string::npos) {
      EXPECT_TRUE(line.substr(line.find("or ")).starts_with("or eager-1f1b")) << line;
      EXPECT_EQ(line.find("or "), ranked.out.find("schedule"));
      ++others;
      continue;
    }
    EXPECT_EQ(line.find(" %  ") + 2, cuts) << ranked.out;
    ++rows;
  }
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(others, 2);

  const Outcome none = run("simulate", "--stages 4 --micro-batches 8 --compare --fits 1" + kTimes);
  EXPECT_EQ(none.code, 3);
  EXPECT_EQ(none.err,
            "frazil simulate: no schedule of the menu holds as little as 1 micro-batch on a "
            "device\n");
}

TEST_F(Verbs, BadUsageEndsWithOneSentenceAndWritesNothing) {
  write_text_file(path("broken.json"), "{\"format\": \"frazil.model\", ");
  const std::string what_if = "--stages 2 --micro-batches 2 --out timeline.csv" + kTimes;
  const std::string files_given = "--profile model.json --cluster cluster.json --out plan.json";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"simulate", ""},
      {"simulate", "--unknown"},
      {"simulate", what_if},
      {"simulate", what_if + " --schedule fastest"},
      {"simulate", what_if + " --schedule 1f1b --chunks 2"},
      {"simulate", what_if + " --schedule gpipe --in-flight 2"},
      {"simulate", what_if + " --schedule 1f1b --stages 3"},
      {"simulate", what_if + " --schedule 1f1b --hop 3"},
      {"simulate", what_if + " --schedule 1f1b --hop -3ms"},
      {"simulate", what_if + " --schedule 1f1b --in-flight 0"},
      {"simulate", what_if + " --schedule 1f1b --plan plan.json"},
      {"simulate", what_if + " --schedule 1f1b --jitter some"},
      {"simulate", what_if + " --schedule 1f1b --jitter 101"},
      {"simulate", what_if + " --schedule 1f1b --buffers -1"},
      {"simulate", what_if + " --schedule 1f1b --draws 5"},
      {"simulate", what_if + " --schedule 1f1b --change faster"},
      {"simulate", what_if + " --schedule 1f1b --chrome timeline.csv"},
      {"simulate", what_if + " --compare"},
      {"simulate", "--stages 0 --micro-batches 2 --schedule 1f1b" + kTimes},
      {"simulate", "--stages 2 --micro-batches x --schedule 1f1b" + kTimes},
      {"simulate",
       "--stages 3 --micro-batches 1 --schedule 1f1b --forward 1ms,2ms "
       "--backward-input 1ms --backward-weight 1ms"},
      {"simulate", "--plan absent.json --profile model.json --cluster cluster.json"},
      {"simulate", "--plan model.json --profile model.json --cluster cluster.json"},
      {"simulate", "--plan model.json"},
      {"simulate", "--plan '' --profile model.json --cluster cluster.json"},
      {"simulate", what_if + " --schedule 1f1b --overlap-reductions"},
      {"simulate", what_if + " --schedule fifo"},
      {"simulate", what_if + " --schedule 1f1b --share-links"},
      {"simulate", what_if + " --schedule 1f1b --block-sends"},
      {"simulate", what_if + " --schedule 1f1b --buffers 2"},
      {"simulate", what_if + " --schedule 1f1b --jitter 2.00001"},
      {"simulate", what_if + " --schedule 1f1b --chrome ./timeline.csv"},
      {"simulate", what_if + " --schedule 1f1b extra"},
      {"plan", files_given + " --batch 8 --micro-batch 8,8"},
      {"plan", files_given + " --batch 8 --schedules 1f1b,gpipe,1f1b"},
      {"plan", "--profile model.json --cluster cluster.json --batch 8 --out model.json"},
      {"plan", "--profile model.json --cluster cluster.json --batch 8 --out ./cluster.json"},
      {"plan", "--profile model.json --cluster cluster.json --batch 8 --out ''"},
      {"plan", files_given},
      {"plan", files_given + " --batch 0"},
      {"plan", files_given + " --batch 8 --micro-batch 16"},
      {"plan", files_given + " --batch 8 --micro-batch 1,"},
      {"plan", files_given + " --batch 8 --mask 01"},
      {"plan", files_given + " --batch 8 --mask 0110"},
      {"plan", files_given + " --batch 8 --schedules gpipe,none"},
      {"plan", files_given + " --batch 8 --schedules 1f1b,"},
      {"plan", files_given + " --batch 8 --schedules 1f1b,pipedream"},
      {"plan", files_given + " --batch 8 --schedules ,1f1b"},
      {"plan", files_given + " --batch 8 --top 0"},
      {"plan", "--profile broken.json --cluster cluster.json --batch 8"},
      {"plan", "--profile model.json --cluster model.json --batch 8"},
      {"plan", files_given + " --batch 8 extra"},
  };
  const std::size_t files = count_files();
  for (const auto& [verb, arguments] : bad) {
    SCOPED_TRACE(verb + " " + arguments);
    const Outcome outcome = run(verb, arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil " + verb + ": "), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
    EXPECT_EQ(count_files(), files);
  }
}

}  // namespace
}  // namespace frazil
