// Tests the built programs on plans whose stages lie on several devices, or that tie across
// devices.

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "planner/schedules/make_schedule.h"
#include "profiles/model_profile_json.h"
#include "tests/planner/support/shared_plans.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

class SharedVerbs : public testing::Test {
 protected:
  void SetUp() override {
    ModelProfile profile = make_chain(4, microseconds(10), microseconds(10), microseconds(10));
    profile.tied = {{"embedding", Bytes{500}, {LayerId{0}, LayerId{3}}}};
    write_model_profile(profile, path("model.json"));
    write_cluster(
        make_uniform_cluster(3, Bytes{1'000'000}, {microseconds(5), BytesPerSecond{1'000'000'000}}),
        path("cluster.json"));
    Plan plan = make_shared_plan({2, 1}, 2, 6, {});
    plan.model_hash = model_hash(profile);
    write_plan(plan, path("plan.json"));
    plan.schedule = ExplicitSchedule{make_schedule(plan, 3).devices};
    write_plan(plan, path("lists.json"));
    Plan sliced = make_shared_plan({2, 1}, 2, 24, {});
    sliced.model_hash = plan.model_hash;
    sliced.micro_batch_size = 4;
    sliced.pipelines[0].micro_batches = {{MicroBatchId{0}, MicroBatchId{5}}};
    sliced.pipelines[0].stages[0].axis = DeviceAxis::kSamples;
    write_plan(sliced, path("exact.json"));
    sliced.reduction = ReductionMode::kFast;
    write_plan(sliced, path("sliced.json"));
    plan.pipelines[0].stages[0].axis = DeviceAxis::kTensor;
    plan.schedule = NamedSchedule{};
    write_plan(plan, path("tensor.json"));
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  Outcome simulate(const std::string& plan, const std::string& more) const {
    return folder_.run("simulate",
                       "--plan " + plan + " --profile model.json --cluster cluster.json " + more);
  }

  Outcome export_plan(const std::string& more, const std::string& plan = "plan.json") const {
    return folder_.run("export",
                       "--plan " + plan + " --profile model.json --cluster cluster.json " + more);
  }

 private:
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(SharedVerbs, SimulateAnswersEveryQuestion) {
  for (const char* const more :
       {"", "--json", "--explain", "--messages", "--share-links --block-sends", "--buffers 0",
        "--wait-for-memory", "--overlap-reductions", "--jitter 2 --draws 5", "--clip",
        "--change 'device 1 x2'", "--micro-batches 3", "--in-flight 1", "--schedule gpipe",
        "--schedule eager-1f1b", "--schedule zb-h1", "--schedule lrtf", "--schedule fifo",
        "--out t.csv --chrome t.json"}) {
    const Outcome outcome = simulate("plan.json", more);
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.err;
    EXPECT_NE(outcome.out, "") << more;
  }
  const Outcome told = simulate("plan.json", "");
  EXPECT_NE(told.out.find("2 stages x 1 pipeline on 2+1 devices"), std::string::npos) << told.out;
  EXPECT_EQ(simulate("lists.json", "--explain").code, 0);
  for (const char* const form : {"chakra", "chrome", "svg", "html"}) {
    const Outcome exported = export_plan(std::string("--out out --to ") + form);
    EXPECT_EQ(exported.code, 0) << form << ": " << exported.err;
  }
}

TEST_F(SharedVerbs, AnswerEveryQuestionAboutSlices) {
  for (const char* const more :
       {"", "--json", "--explain", "--messages", "--share-links --block-sends", "--buffers 0",
        "--wait-for-memory", "--overlap-reductions", "--jitter 2 --draws 5", "--clip", "--compare",
        "--change 'device 1 x2'", "--micro-batches 3", "--in-flight 1", "--schedule gpipe",
        "--schedule zb-h1", "--schedule lrtf", "--out t.csv --chrome t.json"}) {
    const Outcome outcome = simulate("sliced.json", more);
    EXPECT_EQ(outcome.code, 0) << more << ": " << outcome.err;
    EXPECT_NE(outcome.out, "") << more;
  }
  const Outcome told = simulate("sliced.json", "");
  EXPECT_NE(told.out.find("2 stages x 1 pipeline on 2 sliced+1 devices"), std::string::npos)
      << told.out;
  for (const char* const form : {"chakra", "chrome", "svg", "html"}) {
    const Outcome exported = export_plan(std::string("--out out --to ") + form, "sliced.json");
    EXPECT_EQ(exported.code, 0) << form << ": " << exported.err;
  }
  EXPECT_EQ(export_plan("--to pytorch-csv --out out.csv", "sliced.json").code, 3);
  const Outcome exact = simulate("exact.json", "");
  EXPECT_EQ(exact.code, 3);
  EXPECT_NE(exact.err.find("stage 0 of pipeline 0 shares micro-batches by samples, which goes with "
                           "the reduction fast, not exact"),
            std::string::npos)
      << exact.err;
}

TEST_F(SharedVerbs, CompareRanksTheFourSchedulesThatTakeSuchStages) {
  const Outcome ranked = simulate("plan.json", "--compare");
  EXPECT_EQ(ranked.code, 0) << ranked.err;
  EXPECT_NE(ranked.out.find("4 plans fit on 3 devices, 0 do not"), std::string::npos) << ranked.out;
}

TEST_F(SharedVerbs, RefuseInOneSentenceWhatIsNotInterpreted) {
  const Outcome hanayo = simulate("plan.json", "--schedule hanayo");
  EXPECT_EQ(hanayo.code, 3);
  EXPECT_NE(hanayo.err.find("hanayo takes no stages on several devices; gpipe, 1f1b, eager-1f1b "
                            "and zb-h1 do"),
            std::string::npos)
      << hanayo.err;
  const Outcome tensor = simulate("tensor.json", "");
  EXPECT_EQ(tensor.code, 3);
  EXPECT_NE(tensor.err.find("stage 0 of pipeline 0 shares its devices along an axis other than "
                            "data and samples, which is not interpreted yet"),
            std::string::npos)
      << tensor.err;
  const Outcome exported = export_plan("--to pytorch-csv --out out.csv");
  EXPECT_EQ(exported.code, 3);
  EXPECT_NE(exported.err.find("its stage lies on device 0 too, and PyTorch's on one rank each"),
            std::string::npos)
      << exported.err;
}

}  // namespace
}  // namespace frazil
