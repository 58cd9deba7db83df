// Tests `frazil plan --effort N`: an answer before it is proven, and what is known of the rest.

#include <gtest/gtest.h>

#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

class SearchEffort : public testing::Test {
 protected:
  void SetUp() override {
    const ModelProfile profile =
        make_chain(12, microseconds(90), microseconds(110), microseconds(70));
    Cluster cluster =
        make_uniform_cluster(8, Bytes{1'000'000'000}, {microseconds(5), BytesPerSecond{1'000'000}});
    for (std::size_t d = 4; d < 8; ++d) cluster.devices[d].time_ppm = 1'700'000;
    write_model_profile(profile, folder_.path("model.json"));
    write_cluster(cluster, folder_.path("cluster.json"));
  }
  Outcome plan(const std::string& flags) const {
    return folder_.run("plan", "--profile model.json --cluster cluster.json --batch 16 " + flags);
  }
  JsonFields plan_json(const std::string& flags) const {
    return JsonFields(parse_json(plan(flags + " --json").out, "answer"));
  }
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

std::int64_t makespan_of(JsonFields& answer) {
  JsonFields best(answer.required("feasible").items()[0]);
  return best.required("makespan_ns").integer(1, kLargestQuantity);
}

TEST_F(SearchEffort, SaysWhatTheRestTakesAtLeast) {
  const Outcome early = plan("--effort 1 --top 1");
  ASSERT_EQ(early.code, 0) << early.err;
  EXPECT_NE(early.out.find(" plans not looked at; none takes less than "), std::string::npos)
      << early.out;
  JsonFields first = plan_json("--effort 1 --top 1");
  JsonFields proven = plan_json("--effort 0 --top 1");
  EXPECT_GT(first.required("not_looked_at").integer(0, kLargestQuantity), 0);
  EXPECT_LE(first.required("not_looked_at_take_at_least_ns").integer(0, kLargestQuantity),
            makespan_of(proven));
  EXPECT_GE(makespan_of(first), makespan_of(proven));
  EXPECT_EQ(plan("--effort 0 --top 1").out.find("not looked at"), std::string::npos);
}

TEST_F(SearchEffort, TellsProgramsWhatEachDeviceHolds) {
  JsonFields answer = plan_json("--top 1");
  JsonFields best(answer.required("feasible").items()[0]);
  for (const JsonCursor& device : best.required("devices").items()) {
    JsonFields memory(device);
    EXPECT_GT(memory.required("memory_peak_bytes").integer(0, kLargestQuantity), 0);
  }
}

TEST_F(SearchEffort, FindsGoodPlansSoon) {
  JsonFields soon = plan_json("--effort 50 --top 1");
  JsonFields proven = plan_json("--effort 0 --top 1");
  EXPECT_LE(makespan_of(soon), makespan_of(proven) * 5 / 4);
}

TEST_F(SearchEffort, IsANumber) {
  const Outcome outcome = plan("--effort some");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--effort some"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace frazil
