// Tests subcommands, as processes, whose files or whose standard output cannot be written: the
// answer is never lost with a file, and the exit code is never 0 if something was lost.

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "profiles/model_profile_json.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr const char* kFull = "/dev/full";
const std::string kWhatIf =
    "--stages 2 --micro-batches 4 --schedule 1f1b --forward 1ms --backward-input 1ms "
    "--backward-weight 1ms ";

class LostOutput : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFull)) GTEST_SKIP() << "this system has no " << kFull;
    write_model_profile(make_chain(4, microseconds(10), microseconds(10), microseconds(10)),
                        folder_.path("model.json"));
    write_cluster(make_uniform_cluster(2, Bytes{1'000'000}, {microseconds(5), {}}),
                  folder_.path("cluster.json"));
    write_text_file(folder_.path("layers.csv"),
                    "name,forward_us,backward_us,parameter_bytes,activation_bytes\n"
                    "first,10,20,100,10\nsecond,10,20,100,10\n");
    ASSERT_EQ(folder_.run("plan", kFiles + "--out plan.json").code, 0);
  }

  // Runs a process whose standard output is full and returns its exit code and its messages.
  Outcome run_full(const std::string& verb, const std::string& arguments) const {
    Outcome outcome =
        folder_.run(verb, arguments + " >" + kFull + " 2>said.txt; echo $? >code.txt; true");
    outcome.code = std::stoi(read_text_file(folder_.path("code.txt")));
    outcome.err = read_text_file(folder_.path("said.txt"));
    return outcome;
  }

  const std::string kFiles = "--profile model.json --cluster cluster.json --batch 8 ";
  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
};

TEST_F(LostOutput, AFileThatCannotBeWrittenLosesNoAnswer) {
  const std::string plan = "--plan plan.json --profile model.json --cluster cluster.json ";
  const std::vector<std::pair<std::string, std::string>> commands = {
      {"plan", kFiles},
      {"plan", kFiles + "--json "},
      {"plan", kFiles + "--planner uniform "},
      {"simulate", kWhatIf},
      {"simulate", plan + "--json "},
      {"import", "csv layers.csv "},
  };
  for (const auto& [verb, arguments] : commands) {
    SCOPED_TRACE(verb + " " + arguments);
    const Outcome whole = folder_.run(verb, arguments + "--out written");
    ASSERT_EQ(whole.code, 0) << whole.err;
    ASSERT_NE(whole.out, "");
    const Outcome lost = folder_.run(verb, arguments + "--out " + kFull);
    EXPECT_EQ(lost.code, 2);
    EXPECT_EQ(lost.out, whole.out);
    EXPECT_EQ(lost.err, "frazil " + verb +
                            ": /dev/full: found a special file, expected a place for a file\n");
  }
}

TEST_F(LostOutput, AFullStandardOutputIsSaidAndNeverASuccess) {
  const std::vector<std::pair<std::string, std::string>> commands = {
      {"plan", "--help"},       {"plan", "--version"},
      {"plan", kFiles},         {"plan", kFiles + "--json --top 1000000"},  // more than a buffer
      {"simulate", kWhatIf},    {"simulate", "--schedule help"},
      {"reproduce", "pipe-bd"},
  };
  for (const auto& [verb, arguments] : commands) {
    SCOPED_TRACE(verb + " " + arguments);
    const Outcome outcome = run_full(verb, arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "frazil " + verb + ": standard output could not be written\n");
  }
  // The file is there nevertheless.
  const Outcome planned = run_full("plan", kFiles + "--out again.json");
  EXPECT_EQ(planned.code, 1);
  EXPECT_EQ(read_text_file(folder_.path("again.json")), read_text_file(folder_.path("plan.json")));
}

TEST_F(LostOutput, TheFrontDoorSaysSoToo) {
  for (const std::string word : {"--help", "help", "--version"}) {
    const std::string command = std::string(FRAZIL_PROGRAM_FOLDER) + "/frazil " + word + " >" +
                                kFull + " 2>'" + folder_.path("said.txt") + "'";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << word;
    EXPECT_EQ(read_text_file(folder_.path("said.txt")),
              "frazil: standard output could not be written\n");
  }
}

}  // namespace
}  // namespace frazil
