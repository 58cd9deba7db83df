// Tests `frazil plan --held plan.json --mask BITS --steps N`: whether to go on with a plan or to
// make a transition.

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

class HeldVerb : public testing::Test {
 protected:
  void SetUp() override {
    ModelProfile profile = make_chain(8, microseconds(90), microseconds(110), microseconds(70));
    for (Layer& layer : profile.layers) layer.parameters = Bytes{1'000'000};
    const Cluster cluster = make_uniform_cluster(4, Bytes{1'000'000'000},
                                                 {microseconds(5), BytesPerSecond{1'000'000'000}});
    write_model_profile(profile, folder_.path("model.json"));
    write_cluster(cluster, folder_.path("cluster.json"));
    ASSERT_EQ(run("--out held.json").code, 0);
  }
  Outcome run(const std::string& flags) const {
    return folder_.run("plan", "--profile model.json --cluster cluster.json --batch 8 " + flags);
  }
  JsonFields answer_to(const std::string& flags) const {
    return JsonFields(parse_json(run(flags + " --json").out, "answer"));
  }
  const std::string frozen_ = "--held held.json --mask 00000011 --switch-time 10ms ";
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

std::int64_t number(JsonFields& answer, const std::string& key) {
  return answer.required(key).integer(0, kLargestQuantity);
}

TEST_F(HeldVerb, SwitchesWhereThatPaysAndGoesOnWhereItDoesNot) {
  JsonFields far = answer_to(frozen_ + "--steps 100000");
  EXPECT_FALSE(far.required("stays").boolean());
  const std::int64_t saved = number(far, "held_step_ns") - number(far, "step_ns");
  const std::int64_t price = number(far, "switch_ns");
  ASSERT_GT(saved, 0);
  EXPECT_GE(price, 10'000'000);
  const std::int64_t even = number(far, "break_even_steps");
  EXPECT_GE(saved * even, price);
  EXPECT_LT(saved * (even - 1), price);
  JsonFields best = answer_to("--mask 00000011 --noise 0");
  JsonFields first(best.required("feasible").items()[0]);
  EXPECT_EQ(number(far, "step_ns"), number(first, "makespan_ns"));

  JsonFields near = answer_to(frozen_ + "--steps 1");
  EXPECT_TRUE(near.required("stays").boolean());
  EXPECT_EQ(number(near, "switch_ns"), 0);
  EXPECT_EQ(number(near, "total_ns"), number(near, "held_step_ns"));
}

TEST_F(HeldVerb, WritesThePlanToGoOnWithUnderTheMaskToCome) {
  const Outcome text = run(frozen_ + "--steps 100000 --out next.json");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("held    "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("; paid back after "), std::string::npos) << text.out;
  EXPECT_EQ(read_plan(folder_.path("next.json")).mask.text(), "00000011");
  EXPECT_EQ(run(frozen_ + "--steps 1").out.substr(0, 4), "held");
  EXPECT_NE(run(frozen_ + "--steps 1").out.find("go on with it"), std::string::npos);
}

TEST_F(HeldVerb, SaysHowFarAnAnswerWithinAGapCanBeAboveTheLeast) {
  const Outcome near = run(frozen_ + "--steps 100000 --gap 90");
  ASSERT_EQ(near.code, 0) << near.err;
  EXPECT_NE(near.out.find(" a step, so that the answer is at most "), std::string::npos)
      << near.out;
  EXPECT_EQ(run(frozen_ + "--steps 100000").out.find("not looked at"), std::string::npos);
}

// Other micro-batches or another reduction would give other bits.
TEST_F(HeldVerb, KeepsTheMicroBatchesAndTheReductionOfThePlan) {
  ASSERT_EQ(run("--micro-batch 2 --out held.json").code, 0);
  ASSERT_EQ(run(frozen_ + "--steps 100000 --out next.json").code, 0);
  EXPECT_EQ(read_plan(folder_.path("next.json")).micro_batch_size, 2);
  ASSERT_EQ(run("--micro-batch 2 --reduction fast --out held.json").code, 0);
  ASSERT_EQ(run(frozen_ + "--steps 100000 --out next.json").code, 0);
  EXPECT_EQ(read_plan(folder_.path("next.json")).reduction, ReductionMode::kFast);
  const Outcome other = run(frozen_ + "--steps 5 --reduction exact");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("held.json:25: found a plan with the other reduction, expected one with "
                           "--reduction exact"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(run("--reduction slow").code, 2);
}

TEST_F(HeldVerb, RefusesWhatDoesNotBelongTogether) {
  const auto refuses = [&](const std::string& flags, const std::string& said) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  };
  refuses("--held held.json", "--steps");
  refuses("--held held.json --steps 0", "--steps 0");
  refuses("--steps 5", "--steps without --held");
  refuses("--switch-time 1ms", "--switch-time without --forecast or --held");
  refuses("--held held.json --steps 5 --out held.json", "held.json");
  refuses("--held held.json --steps 5 --explain", "--explain with --held");
  refuses("--held nowhere.json --steps 5", "nowhere.json");
  const Outcome other = folder_.run(
      "plan", "--profile model.json --cluster cluster.json --batch 4 --held held.json --steps 5");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("held.json:5: found a batch of 8, expected --batch 4"),
            std::string::npos)
      << other.err;
}

}  // namespace
}  // namespace frazil
