#include "planner/order_search/searched_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "planner/actions/validate_plan.h"
#include "planner/prediction/simulate_plan.h"
#include "planner/schedules/make_schedule.h"
#include "planner/what_if/plan_changes.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/planner/support/linear_pipelines.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

WhatIf ask(const LinearPipeline& pipeline, const OrderSearchOptions& search) {
  WhatIf what_if;
  what_if.stages = static_cast<int>(pipeline.times.size());
  what_if.micro_batches = pipeline.micro_batches;
  const bool halves = pipeline.release == ActivationRelease::kHalfAtInput;
  what_if.schedule = halves ? ScheduleKind::kZb1p : ScheduleKind::kZbH1;
  what_if.in_flight = pipeline.in_flight.front();
  for (const StageTimes& times : pipeline.times) {
    what_if.forward.push_back(times.forward);
    what_if.backward_input.push_back(times.backward_input);
    what_if.backward_weight.push_back(times.backward_weight);
  }
  if (!pipeline.down.empty()) what_if.hop = pipeline.down.front();
  what_if.search = search;
  return what_if;
}

TEST(SearchedPlan, IsSimulatedToTheTimesThatTheSearchSays) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    LinearPipeline pipeline = draw_equal_hops(random, 6, 12);
    pipeline.times.front().forward += Duration{1};  // something to do
    const Objective objective = seed % 2 == 0 ? Objective::kMakespan : Objective::kSpan;
    const WhatIf what_if = ask(pipeline, {.objective = objective, .budget = 2'000, .seed = seed});
    WhatIfInputs inputs = make_what_if(what_if);
    const std::optional<SearchedOrder> searched = search_what_if(what_if, inputs);
    ASSERT_TRUE(searched.has_value());
    const SimulatedStep step = simulate_what_if(inputs);
    const WhatIfAnswer answer = answer_what_if(inputs, step, searched);
    EXPECT_EQ(answer.makespan, searched->makespan);
    EXPECT_EQ(answer.span, searched->span);
    EXPECT_EQ(answer.moves_tried, searched->moves_tried);
    EXPECT_GE(answer.bounds.makespan.time, searched->bounds.makespan.time);
    EXPECT_LE(answer.bounds.makespan.time, answer.makespan);
    EXPECT_LE(answer.bounds.span.time, answer.span);
    for (std::size_t s = 0; s < pipeline.times.size(); ++s) {
      EXPECT_LE(answer.peak_chunks.at(s), pipeline.in_flight[s]) << "device " << s;
    }
    pipeline.release = ActivationRelease::kAllAtWeight;
    const SearchedOrder alone =
        search_order(pipeline, {.objective = objective, .budget = 2'000, .seed = seed});
    EXPECT_EQ(alone.orders, searched->orders);
  }
}

// A plan of three layers on devices 2, 0 and 1; the first layer needs no gradient of its input.
struct Sample {
  ModelProfile profile = make_chain(3, nanoseconds(20), nanoseconds(30), nanoseconds(10));
  Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000}, {nanoseconds(3), {}});
  Plan plan;

  Sample() {
    plan.model_hash = model_hash(profile);
    plan.batch_size = 7;
    plan.mask = FreezeMask::all_active(3);
    plan.schedule = NamedSchedule{.kind = ScheduleKind::kZbH1, .in_flight = 3};
    plan.pipelines = {make_pipeline(3, {LayerId{1}, LayerId{2}},
                                    {DeviceId{2}, DeviceId{0}, DeviceId{1}},
                                    {MicroBatchId{0}, MicroBatchId{6}})};
  }
  std::string refusal(const Plan& other) const {
    try {
      search_order(other, {profile, cluster}, {.budget = 100});
    } catch (const InfeasibleError& error) {
      return error.what();
    }
    return "taken";
  }
};

TEST(SearchedPlan, HasItsListsOnTheDevicesOfItsStagesAndSaysWhereTheyAreFrom) {
  const Sample sample;
  const auto [plan, found] =
      search_order(sample.plan, {sample.profile, sample.cluster}, {.budget = 3'000});
  EXPECT_NO_THROW(validate(plan, {sample.profile, sample.cluster}, "plan"));
  const auto& lists = std::get<ExplicitSchedule>(plan.schedule).devices;
  ASSERT_EQ(lists.size(), 4U);
  EXPECT_EQ(lists[2].size(), 21U);
  EXPECT_EQ(lists[2].front(),
            make_action(PipelineId{0}, StageId{0}, ActionKind::kForward, MicroBatchId{0}));
  EXPECT_TRUE(lists[3].empty());
  EXPECT_NE(plan.provenance.at("schedule")
                .find("searched for the least makespan in the memory of "
                      "zb-h1"),
            std::string::npos)
      << plan.provenance.at("schedule");
  const PlanSimulation searched = simulate_plan(plan, {sample.profile, sample.cluster});
  const PlanSimulation named = simulate_plan(sample.plan, {sample.profile, sample.cluster});
  EXPECT_LE(searched.makespan, named.makespan);
  EXPECT_LE(found.front().makespan, searched.makespan);
  EXPECT_TRUE(has_searched_order(plan));
  EXPECT_FALSE(has_searched_order(sample.plan));
}

// Each pipeline is searched as if it were alone with its share, on devices that differ.
TEST(SearchedPlan, SearchesEachPipelineForItselfAndEqualOnesOnce) {
  const Sample sample;
  Cluster cluster = make_uniform_cluster(6, Bytes{1'000'000}, {nanoseconds(3), {}});
  cluster.devices[3].time_ppm = 1'700'000;
  const auto on = [](std::vector<int> devices, int first, int last) {
    std::vector<DeviceId> ids;
    for (const int device : devices) ids.emplace_back(device);
    return make_pipeline(
        3, devices.size() == 3 ? std::vector{LayerId{1}, LayerId{2}} : std::vector{LayerId{2}}, ids,
        {MicroBatchId{first}, MicroBatchId{last}});
  };
  Plan both = sample.plan;
  both.batch_size = 12;
  both.pipelines = {on({2, 0, 1}, 0, 6), on({4, 3}, 7, 11)};
  const OrderSearchOptions options{.budget = 3'000};
  const SearchedPlan together = search_order(both, {sample.profile, cluster}, options);
  ASSERT_EQ(together.found.size(), 2U);
  EXPECT_NO_THROW(validate(together.plan, {sample.profile, cluster}, "plan"));
  for (std::size_t p = 0; p < 2; ++p) {
    Plan alone = both;
    alone.pipelines = {both.pipelines[p]};
    alone.batch_size = alone.pipelines[0].micro_batches[0].count();
    alone.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{alone.batch_size - 1}}};
    const SearchedPlan single = search_order(alone, {sample.profile, cluster}, options);
    EXPECT_EQ(single.found.front().orders, together.found[p].orders);
    EXPECT_EQ(single.found.front().makespan, together.found[p].makespan);
  }
  const PlanSimulation simulated = simulate_plan(together.plan, {sample.profile, cluster});
  EXPECT_GE(simulated.makespan, std::max(together.found[0].makespan, together.found[1].makespan));
  both.pipelines = {on({0, 1}, 0, 5), on({2, 4}, 6, 11)};
  const SearchedPlan equal = search_order(both, {sample.profile, cluster}, options);
  EXPECT_EQ(equal.found[0].orders, equal.found[1].orders);
}

TEST(SearchedPlan, RefusesWhatItCannotSearchInOneSentence) {
  const Sample sample;
  Plan fused = with_schedule(sample.plan, {.kind = ScheduleKind::kOneForwardOneBackward});
  EXPECT_NE(sample.refusal(fused).find("split their backward"), std::string::npos);
  Plan recomputes = sample.plan;
  recomputes.pipelines[0].stages[1].memory = MemoryPolicy::kRecompute;
  EXPECT_NE(sample.refusal(recomputes).find("keep what their backward needs"), std::string::npos);
  Plan frozen = sample.plan;
  frozen.mask = FreezeMask::parse("001", "mask", 0);
  EXPECT_NE(sample.refusal(frozen).find("send a gradient on"), std::string::npos);
  Plan twice = sample.plan;
  twice.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{3}}};
  twice.pipelines.push_back(twice.pipelines[0]);
  EXPECT_NE(sample.refusal(twice).find("share no device"), std::string::npos);
}

class SearchVerb : public testing::Test {
 protected:
  Outcome run(const std::string& verb, const std::string& arguments) const {
    return folder_.run(verb, arguments);
  }
  std::string read(const std::string& name) const { return read_text_file(folder_.path(name)); }

  const std::string question_ =
      "--stages 3 --micro-batches 6 --schedule search --forward 1ms,2ms,1ms --backward-input "
      "1ms,2ms,2ms --backward-weight 1ms --hop 0.1ms --budget 20000";

 private:
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(SearchVerb, AnswersAsOtherSchedulesDoAndSaysHowLongItSearched) {
  const Outcome json = run("simulate", question_ + " --in-flight 3 --objective span --json");
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_NE(json.out.find("\"schedule\":\"search\""), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("\"objective\":\"span\""), std::string::npos) << json.out;
  EXPECT_NE(json.out.find("\"moves_tried\":"), std::string::npos) << json.out;
  const Outcome text = run("simulate", question_);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("searched     for the least makespan: "), std::string::npos) << text.out;
  EXPECT_EQ(text.out, run("simulate", question_).out);
}

TEST_F(SearchVerb, KeepsToTheMicroBatchesInFlightThatItWasGiven) {
  const std::string question =
      "--stages 4 --micro-batches 8 --forward 1ms --backward-input 1ms --backward-weight 1ms "
      "--schedule search --activation 1GiB --memory-limit 4GiB --json";
  for (const std::string in_flight : {" --in-flight 4", ""}) {
    const Outcome outcome = run("simulate", question + in_flight);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto answer = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(answer.at("makespan_ns"), 27'000'000);
    EXPECT_EQ(answer.at("peak_chunks"), nlohmann::json({4, 4, 4, 4}));
  }
}

TEST_F(SearchVerb, ExportsItsLists) {
  ASSERT_EQ(run("export", question_ + " --to pytorch-csv --out lists.csv").code, 0);
  const std::string lists = read("lists.csv");
  EXPECT_EQ(std::count(lists.begin(), lists.end(), 'W'), 3 * 6);
  EXPECT_EQ(lists.substr(0, 3), "0F0");
}

TEST_F(SearchVerb, RefusesItsFlagsElsewhere) {
  const Outcome outcome = run("simulate",
                              "--stages 2 --micro-batches 2 --schedule 1f1b --forward 1ms "
                              "--backward-input 1ms --backward-weight 1ms --budget 5");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--budget without --schedule search"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(run("simulate", question_ + " --objective bubble").code, 2);
  EXPECT_EQ(run("simulate", question_ + " --chunks 2").code, 2);
}

}  // namespace
}  // namespace frazil
