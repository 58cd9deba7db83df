#include "planner/verbs/command_line.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace frazil {
namespace {

namespace po = boost::program_options;

struct VerbOutcome {
  int code = 0;
  std::string out;
  std::string err;
};

VerbOutcome run(
    std::vector<std::string> arguments,
    const std::function<ExitCode(const po::variables_map&)>& body =
        [](const po::variables_map&) { return ExitCode::kOk; },
    const std::string& words = "") {
  po::options_description options("flags");
  options.add_options()("batch", po::value<std::string>(), "samples of a step")(
      "json", po::bool_switch(), "answer in JSON");
  arguments.insert(arguments.begin(), "frazil-test");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  VerbOutcome outcome;
  outcome.code = run_verb({"test", "Tests.", "frazil test --batch N", words},
                          static_cast<int>(arguments.size()), argv.data(), options, body);
  std::fflush(stdout);
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

template <class Error>
VerbOutcome run_and_throw(const Error& error) {
  return run({}, [&](const po::variables_map&) -> ExitCode { throw error; });
}

TEST(CommandLine, GivesTheBodyItsFlagsAndReturnsItsExitCode) {
  std::string batch;
  const VerbOutcome outcome = run({"--batch", "8"}, [&](const po::variables_map& values) {
    batch = values["batch"].as<std::string>();
    return ExitCode::kVerifyInconclusive;
  });
  EXPECT_EQ(batch, "8");
  EXPECT_EQ(outcome.code, 5);
  EXPECT_EQ(outcome.err, "");
}

TEST(CommandLine, HelpSaysWhatEachExitCodeMeans) {
  const std::string help = run({"--help"}).out;
  for (const ExitCode code :
       {ExitCode::kOk, ExitCode::kFailure, ExitCode::kBadInput, ExitCode::kInfeasible,
        ExitCode::kVerifyFailed, ExitCode::kVerifyInconclusive, ExitCode::kPeerLost,
        ExitCode::kOutOfMemory, ExitCode::kPleaseRestart}) {
    const std::string line = "\n  " + std::to_string(static_cast<int>(code)) + " ";
    EXPECT_NE(help.find(line), std::string::npos) << line << help;
  }
  EXPECT_NE(help.find("\n  3   valid but infeasible: nothing fits into memory, no schedule takes "
                      "the plan, or the plan asks for what is not interpreted\n"),
            std::string::npos)
      << help;
}

TEST(CommandLine, TurnsErrorsIntoExitCodesAndOneSentence) {
  const VerbOutcome input = run_and_throw(InputError("plan.json", 3, "X", "Y"));
  EXPECT_EQ(input.code, 2);
  EXPECT_EQ(input.err, "frazil test: plan.json:3: found X, expected Y\n");
  const VerbOutcome infeasible = run_and_throw(InfeasibleError("nothing fits"));
  EXPECT_EQ(infeasible.code, 3);
  EXPECT_EQ(infeasible.err, "frazil test: nothing fits\n");
  EXPECT_EQ(run_and_throw(std::bad_alloc()).code, 7);
  const VerbOutcome bug = run_and_throw(std::logic_error("first line\nsecond line"));
  EXPECT_EQ(bug.code, 1);
  EXPECT_EQ(bug.err, "frazil test: first line\\x0asecond line\n");
}

TEST(CommandLine, RefusesBadFlagsWithOneSentence) {
  const std::vector<std::vector<std::string>> bad = {{"--unknown"},
                                                     {"--bat", "8"},
                                                     {"--batch"},
                                                     {"--batch", "8", "--batch", "9"},
                                                     {"word"},
                                                     {"--json", "extra"},
                                                     {"-b", "8"},
                                                     {"--json=yes"},
                                                     {"--batch", "8", "word"}};
  for (const auto& arguments : bad) {
    SCOPED_TRACE(arguments.front());
    const VerbOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2);
    if (arguments.front() != "--json") {
      EXPECT_EQ(outcome.out, "");
    }
    EXPECT_EQ(outcome.err.find("frazil test: "), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
  }
}

TEST(CommandLine, AMisspeltFlagIsAnsweredWithTheNearestOne) {
  EXPECT_EQ(run({"--bacth", "8"}).err,
            "frazil test: command line: unrecognised option '--bacth'; --help names the flags; did "
            "you mean --batch?\n");
  EXPECT_NE(run({"--hepl"}).err.find("did you mean --help?"), std::string::npos);
}

TEST(CommandLine, AWordThatBelongsToNoFlagIsNamed) {
  EXPECT_EQ(run({"--batch", "8", "extra", "more"}).err,
            "frazil test: command line: found `extra`, expected only flags\n");
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
}

TEST(CommandLine, VerbsThatTakeWordsGetThemInOrderFromAnywhereOnTheLine) {
  std::vector<std::string> found;
  const auto note = [&](const po::variables_map& values) {
    found = values["file"].as<std::vector<std::string>>();
    return ExitCode::kOk;
  };
  EXPECT_EQ(run({"a", "--batch", "b", "c", "--json", "d"}, note, "file").code, 0);
  EXPECT_EQ(found, (std::vector<std::string>{"a", "c", "d"}));
  EXPECT_EQ(run({"--batch=b", "c"}, note, "file").code, 0);
  EXPECT_EQ(found, (std::vector<std::string>{"c"}));
  EXPECT_EQ(run({"--help"}, note, "file").out.find("--file"), std::string::npos);
}

TEST(CommandLine, AskingForHelpByOneLetterIsTheSame) {
  const VerbOutcome help = run({"-h"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.out, run({"--help"}).out);
  EXPECT_EQ(run({"a", "-h"}, {}, "file").out.find("Tests."), 0U);
}

TEST(CommandLine, PrintsHelpAndVersionOnStandardOutput) {
  const VerbOutcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("usage: frazil test --batch N"), std::string::npos);
  EXPECT_NE(help.out.find("--batch"), std::string::npos);
  EXPECT_NE(help.out.find("--version"), std::string::npos);
  const VerbOutcome version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, std::string("frazil ") + FRAZIL_VERSION + "\n");
}

TEST(CommandLine, ListsItsFlagsForPrograms) {
  const VerbOutcome list = run({"--describe-flags"});
  EXPECT_EQ(list.code, 0);
  EXPECT_EQ(list.err, "");
  EXPECT_EQ(
      list.out.find(R"({"name":"test","purpose":"Tests.","usage":"frazil test --batch N",)"
                    R"("flags":[{"name":"batch","value":"arg","meaning":"samples of a step"},)"
                    R"({"name":"json","value":"","meaning":"answer in JSON"},)"
                    R"({"name":"help",)"),
      0U)
      << list.out;
}

}  // namespace
}  // namespace frazil
