// Tests that plans are the same, byte for byte, on every run and for every number of threads that
// plan at once from the same input: the planner has neither globals nor anything else that threads
// share.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "planner/answers/print_explained_plan.h"
#include "planner/answers/print_searched_orders.h"
#include "planner/answers/print_trajectory.h"
#include "planner/answers/ranking_json.h"
#include "planner/bounds/shape.h"
#include "planner/order_search/searched_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/search/explain_plan.h"
#include "planner/search/rankings/searched_orders.h"
#include "planner/search/search.h"
#include "planner/trajectory/plan_trajectory.h"
#include "planner/transitions/replan.h"
#include "profiles/quantity_text.h"
#include "tests/support/sample_models.h"
#include "tests/support/sanitizer.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

// The input that all threads read.
struct Input {
  ModelProfile profile = make_chain(8, microseconds(90), microseconds(110), microseconds(70));
  Cluster equal =
      make_uniform_cluster(4, Bytes{30'000}, {microseconds(2), BytesPerSecond{1'000'000'000}});
  Cluster unequal = equal;
  SearchOptions plain;
  SearchOptions joint;
  std::vector<ForecastSegment> forecast;

  Input() {
    profile.layers[2].costs[0].forward = microseconds(130);
    profile.layers[2].costs[1].forward = 64 * microseconds(130);
    unequal.devices[1].time_ppm = 1'600'000;
    unequal.devices[3].time_ppm = 1'600'000;
    unequal.devices[3].memory_limit = Bytes{60'000};
    plain.batch_size = 16;
    plain.micro_batch_sizes = {1, 2};
    plain.mask = FreezeMask::all_active(8);
    plain.keep = 10;
    joint = plain;
    joint.schedules = synchronous_schedules();
    joint.joint = joint.recompute = true;
    forecast = {{0, 100, FreezeMask::all_active(8)},
                {100, 900, FreezeMask::parse("00011111", "test", 1)},
                {1'000, 9'000, FreezeMask::parse("00000011", "test", 1)}};
  }
};

// Writes every candidate with all that is told of it, each plan as a file, and what was left out.
std::string tell(const Ranking& ranking, const Input& input, const Cluster& cluster,
                 const SearchOptions& options) {
  std::string text = ranking_json(ranking, {input.profile, cluster}, 1'000'000);
  for (const Candidate& candidate : ranking.candidates) text += to_json(candidate.plan);
  return text +
         plan_explanation_json(explain_plan(ranking, {input.profile, cluster}, options), cluster);
}

std::string search(const Input& input, const Cluster& cluster, const SearchOptions& options) {
  return tell(search_plans({input.profile, cluster}, options), input, cluster, options);
}

std::string search_with_orders(const Input& input) {
  Ranking ranking = search_plans({input.profile, input.unequal}, input.joint);
  const std::vector<ShapeOrder> orders =
      search_orders({input.profile, input.unequal}, input.joint,
                    {.objective = Objective::kMakespan, .budget = 20'000, .seed = 3});
  add_orders(ranking, orders);
  return tell(ranking, input, input.unequal, input.joint) + orders_json(orders);
}

std::string search_one_order(const Input& input) {
  Plan plan;
  plan.model_hash = model_hash(input.profile);
  plan.batch_size = 16;
  plan.mask = FreezeMask::all_active(8);
  plan.schedule = NamedSchedule{.kind = ScheduleKind::kZbH1, .in_flight = 3};
  plan.pipelines = {make_pipeline(8, {LayerId{1}, LayerId{4}, LayerId{6}},
                                  {DeviceId{0}, DeviceId{1}, DeviceId{2}, DeviceId{3}},
                                  {MicroBatchId{0}, MicroBatchId{15}})};
  const SearchedPlan searched =
      search_order(plan, {input.profile, input.unequal},
                   {.objective = Objective::kSpan, .budget = 30'000, .seed = 1});
  return to_json(searched.plan);
}

std::string walk(const Input& input) {
  TrajectoryOptions options;
  options.search = input.joint;
  options.overhead.start = microseconds(700);
  return trajectory_json(plan_trajectory({input.profile, input.equal}, input.forecast, options));
}

std::string walk_with_caches(const Input& input) {
  TrajectoryOptions options;
  options.search = input.plain;
  options.overhead.start = microseconds(700);
  options.store = FeatureStore{
      160, {Bytes{1'000'000'000}, {microseconds(1), BytesPerSecond{8'000'000'000}}}, {}};
  return trajectory_json(plan_trajectory({input.profile, input.equal}, input.forecast, options));
}

std::string search_a_little(const Input& input) {
  SearchOptions options = input.joint;
  options.cache = true;
  options.mask = FreezeMask::parse("00011111", "test", 1);
  options.effort = 20;
  return search(input, input.unequal, options);
}

std::string plan_again(const Input& input) {
  HeldState held;
  held.plan = search_plans({input.profile, input.equal}, input.plain).best()->plan;
  held.steps = 50;
  held.trained = held.plan.mask;
  SearchOptions options = input.joint;
  options.mask = FreezeMask::parse("00000111", "test", 1);
  PlanSearch search({input.profile, input.equal});
  const auto next = replan(search, {input.profile, input.equal}, held, options);
  return to_json(next->next.plan) + to_text(next->cost.total);
}

using Question = std::function<std::string(const Input&)>;

std::vector<Question> list_questions() {
  return {
      [](const Input& input) { return search(input, input.equal, input.plain); },
      [](const Input& input) { return search(input, input.unequal, input.plain); },
      [](const Input& input) { return search(input, input.equal, input.joint); },
      [](const Input& input) { return search(input, input.unequal, input.joint); },
      search_with_orders,
      search_one_order,
      walk,
      walk_with_caches,
      search_a_little,
      plan_again,
  };
}

// Each thread asks all questions and begins with another one, so that unlike searches meet.
std::vector<std::vector<std::string>> ask_at_once(const Input& input, std::size_t threads) {
  const std::vector<Question> questions = list_questions();
  std::vector<std::vector<std::string>> answers(threads,
                                                std::vector<std::string>(questions.size()));
  std::vector<std::thread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (std::size_t i = 0; i < questions.size(); ++i) {
        const std::size_t q = (t + i) % questions.size();
        answers[t][q] = questions[q](input);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  return answers;
}

TEST(ConcurrentPlans, AreEqualByteForByteForEveryNumberOfThreads) {
  const Input input;
  std::vector<std::string> alone;
  for (const Question& question : list_questions()) alone.push_back(question(input));
  for (std::size_t q = 0; q < alone.size(); ++q) {
    ASSERT_GT(alone[q].size(), 500U) << "question " << q << ": " << alone[q];
    for (std::size_t other = 0; other < q; ++other) EXPECT_NE(alone[q], alone[other]);
  }
  const std::vector<std::size_t> counts =
      kSanitizer.empty() ? std::vector<std::size_t>{1, 2, 8} : std::vector<std::size_t>{2};
  for (const std::size_t threads : counts) {
    for (const std::vector<std::string>& answers : ask_at_once(input, threads)) {
      for (std::size_t q = 0; q < alone.size(); ++q) {
        EXPECT_TRUE(answers[q] == alone[q]) << threads << " threads, question " << q;
      }
    }
  }
}

// The second input is made anew, so equal answers do not come from shared objects.
TEST(ConcurrentPlans, DependOnWhatTheInputSaysAlone) {
  const Input input;
  const Input again;
  for (const Question& question : list_questions()) EXPECT_EQ(question(input), question(again));
}

}  // namespace
}  // namespace frazil
