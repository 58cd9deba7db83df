#pragma once
// `frazil ablate` as a process, beside a stand-in for `frazil train` that answers what is planted
// (stand_in_train.sh).

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "profiles/model_profile_json.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"
#include "tests/support/sample_models.h"
#include "tests/support/write_cluster.h"

namespace frazil {

// A test has a folder of its own: a model of four blocks, a cluster of two devices, a run of four
// epochs, and the two programs in bin.
class AblateProgram : public testing::Test {
 protected:
  inline static const std::string kFiles =
      "--run run.json --profile model.json --cluster cluster.json --out out ";

  void SetUp() override {
    const std::filesystem::path bin = folder_.path("bin");
    std::filesystem::create_directories(bin);
    std::filesystem::copy_file(std::filesystem::path(FRAZIL_PROGRAM_FOLDER) / "frazil-ablate",
                               bin / "frazil-ablate");
    // The copy may be run as the script may.
    std::filesystem::copy_file(
        std::filesystem::path(FRAZIL_SOURCE_FOLDER) / "tests/analysis/verbs/stand_in_train.sh",
        bin / "frazil-train");
    plant("");
    const Duration time = std::chrono::milliseconds(1);
    write_model_profile(make_chain(4, time, time, time), folder_.path("model.json"));
    write_cluster(make_uniform_cluster(2, Bytes{1 << 30}, {Duration{1000}, BytesPerSecond{0}}),
                  folder_.path("cluster.json"));
    write_run(4);
  }
  void plant(const std::string& lines) const {
    write_text_file(folder_.path("bin/planted"), lines);
  }
  void write_run(int epochs) const {
    write_text_file(folder_.path("run.json"),
                    R"({"format": "frazil.run", "version": 1, "batch_size": 8,
                        "micro_batch_size": 1, "freeze": {"alpha": 0.5}, "epochs": )" +
                        std::to_string(epochs) + "}");
  }
  Outcome shell(const std::string& command) const {
    const int status = std::system(
        ("cd '" + folder_.path("") + "' && (" + command + ") >out.txt 2>err.txt").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(folder_.path("out.txt")),
            read_text_file(folder_.path("err.txt"))};
  }
  Outcome ablate(const std::string& flags) const {
    return shell("bin/frazil-ablate " + kFiles + flags);
  }
  // Returns the command lines of the runs so far.
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    if (!std::filesystem::exists(folder_.path("bin/calls"))) return lines;
    std::istringstream text(read_text_file(folder_.path("bin/calls")));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  std::string call_of(const std::string& arm) const {
    for (const std::string& call : calls()) {
      if (call.find("out/" + arm + "/") != std::string::npos) return call;
    }
    return "";
  }
  bool has_result(const std::string& pair) const {
    return std::filesystem::exists(folder_.path("out/" + pair + "/result.json"));
  }

  const ProgramFolder folder_{std::string("ablate-") +
                              testing::UnitTest::GetInstance()->current_test_info()->name()};
};

}  // namespace frazil
