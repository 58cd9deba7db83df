#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "profiles/text_file.h"
#include "tests/analysis/sample_runs.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

struct Answer {
  int code = -1;
  std::string output;
};

// Runs the program and discards its messages, or takes them as part of its output.
Answer run_report(const std::string& words, const std::string& messages = "/dev/null") {
  const std::string command =
      std::string(FRAZIL_PROGRAM_FOLDER) + "/frazil-report " + words + " 2>" + messages;
  Answer answer;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return answer;
  char buffer[4096];
  for (std::size_t read = 0; (read = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    answer.output.append(buffer, read);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) answer.code = WEXITSTATUS(status);
  return answer;
}

TEST(ReportProgram, TakesFoldersBeforeAndAfterFlags) {
  const TemporaryFolder folder("report_program");
  const std::string root = folder.path().string();
  write_run(sample_run("first"), folder.path() / "first");
  write_run(sample_run("second"), folder.path() / "second");
  const Answer answer = run_report(root + "/first --out " + root + "/page.html --json " + root +
                                   "/second --title=Both");
  ASSERT_EQ(answer.code, 0);
  const nlohmann::json runs = nlohmann::json::parse(answer.output).at("runs");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.at(1).at("name"), "second");
  const nlohmann::json& phases = runs.at(1).at("phases");
  EXPECT_FALSE(phases.at(0).contains("memory"));
  const nlohmann::json& device = phases.at(1).at("memory").at("devices").at(0);
  EXPECT_EQ(device.at("predicted").at("stash_bytes"), 2 << 20);
  EXPECT_EQ(device.at("measured").at("allocator_peak_bytes"), 6 << 20);
  EXPECT_NE(read_text_file(folder.path() / "page.html").find("<h1>Both</h1>"), std::string::npos);
  const Answer text = run_report(root + "/first --out " + root + "/page.html");
  EXPECT_NE(text.output.find("from step  device  parameters  stash            peak total       "
                             "allocator\n"),
            std::string::npos)
      << text.output;
}

TEST(ReportProgram, TellsWhatItWroteBehindItsTables) {
  const TemporaryFolder folder("report_order");
  const std::string root = folder.path().string();
  write_run(sample_run("run"), folder.path() / "run");
  const std::string words = root + "/run --out " + root + "/page.html";
  const Answer tables = run_report(words);
  const Answer both = run_report(words, "&1");
  EXPECT_EQ(both.output, tables.output + "wrote " + root + "/page.html\n");
}

TEST(ReportProgram, DrawsOneRunAsAPicture) {
  const TemporaryFolder folder("report_picture");
  const std::string root = folder.path().string();
  write_run(sample_run("first"), folder.path() / "first");
  write_run(sample_run("second"), folder.path() / "second");
  const std::string page = " --out " + root + "/page.html --svg " + root + "/run.svg";
  ASSERT_EQ(run_report(root + "/first" + page).code, 0);
  const std::string svg = read_text_file(folder.path() / "run.svg");
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg.substr(0, 80);
  for (const char* words : {">Blocks<", ">Predicted<", ">Measured: step ", ">From step "}) {
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(run_report(root + "/first " + root + "/second" + page).code, 2);
  EXPECT_EQ(run_report(root + "/first --svg " + root + "/first/trace.jsonl").code, 2);
  EXPECT_EQ(run_report(root + "/first --out " + root + "/x --svg " + root + "/x").code, 2);
}

TEST(ReportProgram, NeverReplacesWhatARunLeft) {
  const TemporaryFolder folder("report_overwriting");
  const std::string root = folder.path().string();
  write_run(sample_run("first"), folder.path() / "first");
  write_text_file(folder.path() / "first" / "weights.safetensors", "weights");
  const std::string before = read_text_file(folder.path() / "first" / "trace.jsonl");
  for (const std::string file :
       {"trace.jsonl", "./phase-0/measured.csv", "phase-1/memory.json", "weights.safetensors"}) {
    EXPECT_EQ(run_report(root + "/first --out " + root + "/first/" + file).code, 2) << file;
  }
  EXPECT_EQ(read_text_file(folder.path() / "first" / "trace.jsonl"), before);
  EXPECT_EQ(run_report(root + "/first --out " + root + "/first/page.html").code, 0);
}

TEST(ReportProgram, APageThatCannotBeWrittenLosesNoAnswer) {
  const TemporaryFolder folder("report_full");
  const std::string root = folder.path().string();
  write_run(sample_run("first"), folder.path() / "first");
  const Answer whole = run_report(root + "/first --out " + root + "/page.html");
  const Answer lost = run_report(root + "/first --out /dev/null");
  EXPECT_EQ(lost.code, 2);
  EXPECT_NE(lost.output, "");
  EXPECT_EQ(lost.output, whole.output);
}

TEST(ReportProgram, ComparesTwoTimeLines) {
  const TemporaryFolder folder("report_compare");
  write_text_file(folder.path() / "a.csv", to_csv(one_forward(1500, 0)));
  write_text_file(folder.path() / "b.csv", to_csv(one_forward(3000, 0)));
  const std::string files = "--predicted " + (folder.path() / "a.csv").string() + " --measured " +
                            (folder.path() / "b.csv").string();
  const Answer table = run_report(files);
  EXPECT_EQ(table.code, 0);
  EXPECT_NE(table.output.find("0.500"), std::string::npos) << table.output;
  EXPECT_EQ(nlohmann::json::parse(run_report(files + " --json").output).at("step_ratio"), 0.5);
}

TEST(ReportProgram, RefusesBadUsageAndWritesNothing) {
  const TemporaryFolder folder("report_refusals");
  const std::string out = (folder.path() / "page.html").string();
  for (const std::string words : {"", "--predicted a.csv", "--measured a.csv --out x.html",
                                  "nowhere", "--nonsense", "--predicted"}) {
    SCOPED_TRACE(words);
    const Answer answer = run_report(words);
    EXPECT_EQ(answer.code, 2);
    EXPECT_EQ(answer.output, "");
  }
  EXPECT_EQ(run_report("nowhere --out " + out).code, 2);
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace frazil
