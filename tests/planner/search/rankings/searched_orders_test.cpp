// Tests a search of plans that also searches orders of work.

#include "planner/search/rankings/searched_orders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "planner/actions/validate_plan.h"
#include "planner/answers/print_searched_orders.h"
#include "planner/order_search/searched_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/search/search.h"
#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr OrderSearchOptions kFewMoves{
    .objective = Objective::kMakespan, .budget = 4'000, .seed = 0};

// Asks for plans of layers that no cut makes equal, with memory for few micro-batches.
SearchQuestion unequal_question(Bytes memory) {
  SearchQuestion question;
  question.profile = make_chain(5, microseconds(10), microseconds(10), microseconds(10));
  const int forward[] = {13, 7, 11, 8, 12};
  const int weight[] = {8, 12, 7, 13, 9};
  for (std::size_t l = 0; l < 5; ++l) {
    for (CostSample& cost : question.profile.layers[l].costs) {
      cost.forward = cost.forward_frozen = microseconds(forward[l]) * cost.micro_batch_size;
      cost.backward_weight = cost.backward_weight_alone =
          microseconds(weight[l]) * cost.micro_batch_size;
    }
  }
  question.cluster = make_uniform_cluster(5, memory, {microseconds(1), {}});
  question.options.batch_size = 12;
  question.options.micro_batch_sizes = {1};
  question.options.mask = FreezeMask::all_active(5);
  question.options.max_replicas = 1;
  question.options.schedules = {ScheduleKind::kZbH1};
  return question;
}

TEST(SearchedOrders, TakesThoseThatBeatTheNamedScheduleInItsMemory) {
  SearchQuestion question = unequal_question(Bytes{1'000'000});
  Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
  const Duration named = ranking.best()->makespan;
  const std::vector<ShapeOrder> orders =
      search_orders({question.profile, question.cluster}, question.options,
                    {.objective = Objective::kMakespan, .budget = 100'000, .seed = 0});
  ASSERT_FALSE(orders.empty());
  add_orders(ranking, orders);
  EXPECT_TRUE(has_searched_order(ranking.best()->plan));
  EXPECT_LT(ranking.best()->makespan, named);
  EXPECT_GE(ranking.best()->makespan, ranking.best()->bounds.makespan.time);
}

TEST(SearchedOrders, AreSimulatedNeverBelowTheirBoundAndNeverTakenWhereTheyAreWorse) {
  int searched = 0;
  int taken = 0;
  int several = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE(seed);
    const SearchQuestion question = draw_search_question(seed);
    Ranking ranking = search_plans({question.profile, question.cluster}, question.options);
    const std::optional<Duration> before =
        ranking.best() ? std::optional(ranking.best()->makespan) : std::nullopt;
    const std::vector<ShapeOrder> orders =
        search_orders({question.profile, question.cluster}, question.options, kFewMoves);
    for (const ShapeOrder& order : orders) {
      ASSERT_FALSE(order.named.infeasible);
      if (!order.refusal.empty()) {
        EXPECT_FALSE(order.taken);
        continue;
      }
      ++searched;
      taken += order.taken ? 1 : 0;
      several += order.named.plan.pipelines.size() > 1 ? 1 : 0;
      EXPECT_NO_THROW(
          validate(order.searched.plan, {question.profile, question.cluster}, "searched"));
      EXPECT_EQ(order.searched.plan.pipelines, order.named.plan.pipelines);
      EXPECT_GE(order.searched.makespan, order.searched.bounds.makespan.time);
      EXPECT_FALSE(order.taken && order.searched.infeasible);
    }
    add_orders(ranking, orders);
    EXPECT_TRUE(!before || ranking.best()->makespan <= *before);
  }
  EXPECT_GT(searched, 30);
  EXPECT_GT(taken, 5);
  EXPECT_GT(several, 3);
}

TEST(SearchedOrders, OfAScheduleThatWasNotAskedForAreTakenWhereTheyFit) {
  SearchQuestion question = unequal_question(Bytes{1'000'000});
  question.options.schedules = {ScheduleKind::kGpipe};
  const std::vector<ShapeOrder> orders =
      search_orders({question.profile, question.cluster}, question.options,
                    {.objective = Objective::kMakespan, .budget = 0, .seed = 0});
  ASSERT_FALSE(orders.empty());
  for (const ShapeOrder& order : orders) EXPECT_TRUE(order.taken);
}

TEST(SearchedOrders, WithoutSeveralStagesThereIsNoOrderToSearch) {
  SearchQuestion question = unequal_question(Bytes{1'000'000});
  question.options.max_stages = 1;
  const std::vector<ShapeOrder> orders =
      search_orders({question.profile, question.cluster}, question.options, kFewMoves);
  EXPECT_TRUE(orders.empty());
  EXPECT_NE(print_orders(orders).find("no order was searched"), std::string::npos);
}

class SearchedOrdersVerb : public testing::Test {
 protected:
  void SetUp() override {
    const SearchQuestion question = unequal_question(Bytes{1'000'000});
    write_model_profile(question.profile, folder_.path("model.json"));
    write_cluster(question.cluster, folder_.path("cluster.json"));
  }
  const std::string files_ = "--profile model.json --cluster cluster.json ";
  Outcome plan(const std::string& flags) const {
    return folder_.run("plan", files_ + "--batch 12 --max-replicas 1 --micro-batch 1 " + flags);
  }
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(SearchedOrdersVerb, PlansWithSearchAmongTheSchedulesAndSimulatesToTheSameTime) {
  const std::string flags = "--schedules search,zb-h1 --budget 100000 --out plan.json ";
  const Outcome text = plan(flags);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("orders searched, each in the memory of a named schedule"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find(" above what every order takes, "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("; taken\n"), std::string::npos) << text.out;
  EXPECT_EQ(plan(flags).out, text.out);
  JsonFields answer(parse_json(plan(flags + "--json").out, "answer"));
  EXPECT_EQ(plan(flags + "--explain").code, 0);
  EXPECT_FALSE(answer.required("searched_orders").items().empty());
  JsonFields best(answer.required("feasible").items()[0]);
  EXPECT_EQ(best.required("schedule").text(), "search");
  JsonFields simulated(
      parse_json(folder_.run("simulate", files_ + "--plan plan.json --json").out, "answer"));
  EXPECT_EQ(simulated.required("makespan_ns").integer(1, kLargestQuantity),
            best.required("makespan_ns").integer(1, kLargestQuantity));
}

TEST_F(SearchedOrdersVerb, RefusesItsFlagsElsewhere) {
  const auto refuses = [&](const std::string& flags, const std::string& said) {
    const Outcome outcome = plan(flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  };
  refuses("--budget 5", "--budget without --schedules search");
  refuses("--schedules search --budget -1", "--budget -1");
  refuses("--schedules search,search", "each schedule once");
  refuses("--schedules search --planner uniform", "--schedules search with --planner");
  refuses("--schedules search --forecast trace.jsonl", "--schedules search with --forecast");
}

// The search of an order does not see the overheads of a step, so an order that is better without
// overheads may be worse with them.
TEST_F(SearchedOrdersVerb, APlansOrderIsSearchedInItsOwnMemoryAndNeverMadeWorse) {
  Cluster cluster = read_cluster(folder_.path("cluster.json"));
  for (Device& device : cluster.devices) device.action_overhead = std::chrono::microseconds(9);
  write_cluster(cluster, folder_.path("cluster.json"));
  for (const char* const name : {"zb-h1", "zb-h2", "zb-1p", "zb-2p"}) {
    SCOPED_TRACE(name);
    ASSERT_EQ(
        plan(fmt::format("--schedules {} --max-stages 3 --no-recompute --out own.json", name)).code,
        0);
    const auto simulate = [&](const std::string& flags) {
      return folder_.run("simulate", files_ + "--plan own.json " + flags);
    };
    const Outcome searched = simulate("--schedule search --budget 20000");
    ASSERT_EQ(searched.code, 0) << searched.err;
    EXPECT_NE(searched.out.find(fmt::format("searched     in the memory of {}: ", name)),
              std::string::npos)
        << searched.out;
    EXPECT_EQ(searched.out.find("DOES NOT FIT"), std::string::npos);
    const auto makespan = [&](const std::string& flags) {
      JsonFields answer(parse_json(simulate(flags + " --json").out, "answer"));
      return answer.required("makespan_ns").integer(1, kLargestQuantity);
    };
    EXPECT_LE(makespan("--schedule search --budget 20000"), makespan(""));
  }
}

}  // namespace
}  // namespace frazil
