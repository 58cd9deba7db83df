// Tests Sailor's plans in our terms, and `frazil import sailor` as a process.

#include "planner/interop/sailor_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "planner/actions/validate_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/cluster_json.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/program_folder.h"
#include "tests/support/sailor_data.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Makes two stages of 3 and 1 layers in two replicas.
SailorPlan make_source() {
  return {.name = "small",
          .stages = {{LayerId{0}, LayerId{1}, LayerId{2}}, {LayerId{3}}},
          .replicas = 2,
          .degree = 4,
          .gpu = "G",
          .micro_batch_size = 100'000,
          .batch_size = 600'000,
          .iteration = std::nullopt,
          .reduction = std::nullopt,
          .peak_memory = std::nullopt};
}

// Makes links of 1 GB/s whatever the size.
SailorLinks make_links() {
  return {.between_nodes = {{1, {.coefficients = {1}, .largest = 1e12}}}, .within_node = {}};
}

TEST(SailorPlanInOurTerms, HasAPipelinePerReplicaAndADevicePerStage) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  const Plan plan = make_sailor_plan(make_source(), profile);
  ASSERT_EQ(plan.pipelines.size(), 2U);
  EXPECT_EQ(plan.micro_batches(), 6);
  EXPECT_EQ(plan.pipelines[1], make_pipeline(4, {LayerId{3}}, {DeviceId{2}, DeviceId{3}},
                                             {MicroBatchId{3}, MicroBatchId{5}}));
  EXPECT_EQ(plan.reduction, ReductionMode::kFast);
  const Cluster cluster = make_sailor_cluster(make_source(), profile, make_links());
  EXPECT_NO_THROW(validate(cluster, "cluster"));
  EXPECT_NO_THROW(validate(plan, {profile, cluster}, "plan"));
}

TEST(SailorPlanInOurTerms, HasTheBandwidthOfItsMessages) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  // A message has 10 bytes for each of 100,000 samples: 1 MB, for which the fit says 2 GB/s. A
  // ring's share of 3,000 or 1,000 parameter bytes is beyond a fit that grows from 1 MB on.
  SailorLinks links = make_links();
  links.between_nodes.at(1).coefficients = {0.1, 2};
  const Cluster cluster = make_sailor_cluster(make_source(), profile, links);
  const auto bandwidth = [&](int from, int to) {
    return cluster.link(DeviceId{from}, DeviceId{to}).bandwidth.count;
  };
  EXPECT_EQ(bandwidth(0, 1), 2'000'000'000);
  EXPECT_EQ(bandwidth(3, 2), 2'000'000'000);
  // The logarithms are log2(1500 / 1e6) = -9.3808 and log2(500 / 1e6) = -10.9658.
  EXPECT_NEAR(static_cast<double>(bandwidth(0, 2)), 1.06192e9, 1e4);
  EXPECT_NEAR(static_cast<double>(bandwidth(3, 1)), 0.90342e9, 1e4);
  EXPECT_EQ(bandwidth(0, 3), 0) << "never used";
}

TEST(SailorPlanInOurTerms, TakesChangesToWhatLinksCarry) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  const auto time = [&](const SailorLinkScale& scale, DeviceId to, Bytes size) {
    const Cluster cluster = make_sailor_cluster(make_source(), profile, make_links(), scale);
    return size / cluster.link(DeviceId{0}, to).bandwidth;
  };
  const Bytes message{1'000'000};
  const Bytes share{1500};
  EXPECT_EQ(time({}, DeviceId{1}, message), milliseconds(1));
  EXPECT_EQ(time({.message_overhead = milliseconds(3)}, DeviceId{1}, message), milliseconds(4));
  EXPECT_EQ(time({.message_overhead = milliseconds(3), .standing_ends = 2}, DeviceId{1}, message),
            milliseconds(5));
  EXPECT_EQ(time({.reduction = 0.5}, DeviceId{1}, message), milliseconds(1));
  EXPECT_EQ(time({.reduction = 0.5}, DeviceId{2}, share), microseconds(3));
  EXPECT_EQ(time({.message_overhead = milliseconds(3)}, DeviceId{2}, share), Duration{1500});
}

TEST(SailorPlanInOurTerms, WithoutABandwidthOfOneSenderIsRefused) {
  const ModelProfile profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
  SailorLinks links = make_links();
  links.between_nodes = {{4, links.between_nodes.at(1)}};
  EXPECT_THROW(make_sailor_cluster(make_source(), profile, links), InputError);
}

class ImportSailor : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_sailor_data()) GTEST_SKIP() << "no measurements of Sailor in " << sailor_data();
  }

  std::string plan_file(const std::string& name) const {
    return (sailor_data() / "validation" / "clariden" / "OPT-350" / name).string();
  }
  std::string flags() const { return " --data '" + sailor_data().string() + "' --out made"; }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(ImportSailor, WritesProfilePlanAndClusterThatSimulateTakes) {
  const Outcome outcome = folder_.run(
      "import", "sailor '" + plan_file("N32/plan_config_N32_D8.json") + "'" + flags() + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  JsonFields answer(parse_json(outcome.out, "answer"));
  EXPECT_EQ(answer.required("tensor_parallelism").integer(0, 100), 4);
  EXPECT_EQ(answer.required("measured_iteration_ns").integer(0, kLargestQuantity), 1'474'850'000);

  const ModelProfile profile = read_model_profile(folder_.path("made/profile.json"));
  const Plan plan = read_plan(folder_.path("made/plan.json"));
  const Cluster cluster = read_cluster(folder_.path("made/cluster.json"));
  EXPECT_NO_THROW(validate(plan, {profile, cluster}, "plan"));
  EXPECT_EQ(plan.pipelines.size(), 8U);
  EXPECT_EQ(cluster.devices.size(), 32U);

  const Outcome simulated =
      folder_.run("simulate",
                  "--plan made/plan.json --profile made/profile.json --cluster made/cluster.json "
                  "--json");
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  JsonFields simulation(parse_json(simulated.out, "answer"));
  EXPECT_EQ(simulation.required("makespan_ns").integer(0, kLargestQuantity),
            simulate_plan(plan, {profile, cluster}).makespan.count());
}

TEST_F(ImportSailor, SaysWhatWasMeasured) {
  const Outcome outcome =
      folder_.run("import", "sailor '" + plan_file("N2/plan_config_N2_D1.json") + "'" + flags());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 stages x 1 pipeline, 1f1b, 4 micro-batches of 8"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("measured iteration 657.050 ms"), std::string::npos) << outcome.out;
}

TEST_F(ImportSailor, RefusesBadInputAndWritesNothing) {
  const std::string good = read_text_file(plan_file("N2/plan_config_N2_D1.json"));
  const auto damage = [&](const std::string& before, const std::string& after) {
    std::string text = good;
    const std::size_t place = text.find(before);
    EXPECT_NE(place, std::string::npos) << before;
    write_text_file(folder_.path("bad.json"), text.replace(place, before.size(), after));
  };
  const auto refuses = [&](const std::string& arguments, const std::string& part) {
    SCOPED_TRACE(arguments);
    const Outcome outcome = folder_.run("import", arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("made")));
  };
  damage("          25\n", "          25,\n          26\n");
  refuses("sailor bad.json" + flags(), "found stages of 27 layers, expected the 26 layers");
  damage("\"GH-96\"", "\"A100-40\"");
  refuses("sailor bad.json" + flags(), "expected A100-40 with 4, as before");
  refuses("sailor none.json" + flags(), "none.json: found no such file");
  refuses("sailor bad.json --out made", "found no --data");
  refuses("sailor bad.json bad.json" + flags(), "found 2 plans, expected one");
  refuses("sailor bad.json --data nowhere --out made", "nowhere/configs: found no such folder");
  refuses("sailor bad.json --model m" + flags(), "found --model with import sailor");
  refuses("kineto bad.json" + flags(), "found --data with import kineto");
}

}  // namespace
}  // namespace frazil
