// Tests the choice of plans for masks that are not known before they come, on random traces: the
// cost stays within the stated factor of hindsight, which is worked out by trying every walk.

#include "planner/trajectory/online_plans.h"

#include <gtest/gtest.h>

#include <random>

#include "planner/prediction/simulate_plan.h"
#include "planner/trajectory/trajectory_candidates.h"
#include "profiles/error.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

struct MaskedSteps {
  FreezeMask mask;
  Step steps = 1;
};

FreezeMask draw_mask(std::mt19937& random, int blocks) {
  FreezeMask mask = FreezeMask::all_active(blocks);
  const auto frozen = static_cast<int>(random() % static_cast<unsigned>(blocks));
  for (int block = 0; block < frozen; ++block) mask.set_active(BlockId{block}, false);
  return mask;
}

std::vector<MaskedSteps> draw_trace(std::mt19937& random, int blocks) {
  std::vector<MaskedSteps> trace(2 + random() % 4);
  for (MaskedSteps& stretch : trace) {
    stretch = {draw_mask(random, blocks), 1 + static_cast<Step>(random() % 300)};
  }
  return trace;
}

Duration simulate(Plan plan, const FreezeMask& mask, Setting setting,
                  const SearchOptions& options = {}) {
  plan.mask = mask;
  try {
    const PlanSimulation step =
        simulate_plan(plan, setting, {.clip = options.clip, .overlap = options.overlap});
    return find_overflow(step.memory, setting.cluster()) ? kFarAway : step.makespan;
  } catch (const InfeasibleError&) {
    return kFarAway;
  }
}

// Tries every walk that changes at the beginnings of stretches, where a plan may be held from the
// stretch on that brought it. Prices are those of the transitions, the dearer of both ways, of all
// state.
class EveryOnlineWalk {
 public:
  EveryOnlineWalk(const std::vector<Plan>& plans, const std::vector<std::size_t>& brought_by,
                  const std::vector<MaskedSteps>& trace, Setting setting,
                  const OnlineOptions& options)
      : trace_(trace) {
    const Activity all =
        find_activity(setting.profile(),
                      FreezeMask::all_active(static_cast<int>(setting.profile().blocks.size())));
    for (const Plan& from : plans) {
      prices_.emplace_back();
      for (const Plan& to : plans) {
        prices_.back().push_back(
            std::max(price_transition(from, to, setting, all, options.overhead).total,
                     price_transition(to, from, setting, all, options.overhead).total));
      }
    }
    for (std::size_t k = 0; k < trace.size(); ++k) {
      steps_.emplace_back();
      for (std::size_t p = 0; p < plans.size(); ++p) {
        steps_.back().push_back(brought_by[p] > k
                                    ? kFarAway
                                    : simulate(plans[p], trace[k].mask, setting, options.search));
      }
    }
  }
  Duration cheapest(std::size_t segment = 0, std::size_t held = 0) const {
    if (segment == trace_.size()) return Duration{0};
    Duration least = kFarAway;
    for (std::size_t next = 0; next < prices_.size(); ++next) {
      if (steps_[segment][next] >= kFarAway) continue;
      least = std::min(least, prices_[held][next] + steps_[segment][next] * trace_[segment].steps +
                                  cheapest(segment + 1, next));
    }
    return least;
  }

 private:
  const std::vector<MaskedSteps>& trace_;
  Prices prices_;
  std::vector<std::vector<Duration>> steps_;
};

TEST(OnlinePlans, StayWithinTheirFactorOfTheCheapestOfAllWalksOnAHundredTraces) {
  int changes = 0;
  int grown = 0;
  int traces = 0;
  double worst = 1;
  for (std::uint64_t seed = 7000; traces < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(static_cast<unsigned>(seed));
    SearchQuestion question = draw_search_question(seed);
    question.options.cache = false;
    const Setting setting{question.profile, question.cluster};
    const auto blocks = static_cast<int>(question.profile.blocks.size());
    const std::vector<MaskedSteps> trace = draw_trace(random, blocks);
    OnlineOptions options{.search = question.options};
    options.overhead.start = microseconds{random() % 3000};
    PlanSearch search(setting);
    std::optional<OnlinePlans> online;
    std::vector<std::size_t> brought_by;
    Duration paid{0};
    try {
      for (std::size_t k = 0; k < trace.size(); ++k) {
        CandidateQuestion asked{question.options, 2};
        asked.search.mask = trace[k].mask;
        std::vector<Plan> found;
        add_candidates(search, setting, asked, found);
        if (!online) online.emplace(setting, options, found.front());
        online->begin(trace[k].mask, found);
        brought_by.resize(online->plans().size(), k);
        for (Step step = 0; step < trace[k].steps; ++step) {
          paid += simulate(online->serve(1), trace[k].mask, setting, question.options);
        }
      }
    } catch (const InfeasibleError&) {
      continue;
    }
    ++traces;
    const WorkFunction& rule = online->rule();
    ASSERT_EQ(rule.factor(), 2 * online->plans().size() - 1);
    ASSERT_LE(paid, rule.paid()) << "which has paid for transitions, too";
    if (rule.changes() == 0) {
      ASSERT_EQ(paid, rule.paid());
    }
    const EveryOnlineWalk walks(online->plans(), brought_by, trace, setting, options);
    const Duration hindsight = walks.cheapest();
    EXPECT_EQ(rule.hindsight(), hindsight);
    EXPECT_LE(rule.paid(), hindsight * static_cast<int>(rule.factor()) + rule.additive());
    changes += rule.changes();
    grown += online->plans().size() > 2 ? 1 : 0;
    worst = std::max(
        worst, static_cast<double>(rule.paid().count()) / static_cast<double>(hindsight.count()));
  }
  EXPECT_GT(changes, 10);
  EXPECT_GT(grown, 30);
  EXPECT_LT(worst, 2) << "far from what the worst masks could do";
}

// Where transitions take no time, the rule is always in a plan that is fastest under the mask.
TEST(OnlinePlans, GoToTheFastestPlanWhereThatIsFree) {
  const ModelProfile profile =
      make_chain(8, microseconds{100}, microseconds{100}, microseconds{100});
  const Cluster cluster =
      make_uniform_cluster(4, Bytes{1 << 30}, {Duration{0}, BytesPerSecond{1'000'000'000'000'000}});
  const Setting setting{profile, cluster};
  SearchOptions asked;
  asked.batch_size = 8;
  asked.micro_batch_sizes = {1};
  PlanSearch search(setting);
  std::optional<OnlinePlans> online;
  for (const char* bits : {"11111111", "00001111", "00000001", "00111111"}) {
    asked.mask = FreezeMask::parse(bits, "test", 1);
    std::vector<Plan> found;
    add_candidates(search, setting, {asked, 2}, found);
    if (!online) online.emplace(setting, OnlineOptions{asked}, found.front());
    online->begin(asked.mask, found);
    const Plan& held = online->serve(2000);
    EXPECT_EQ(simulate(held, asked.mask, setting), simulate(found.front(), asked.mask, setting))
        << bits;
  }
}

}  // namespace
}  // namespace frazil
