// Real processes, killed and asked to stop at random moments.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "profiles/cluster_json.h"
#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/exec/tiny_run.h"
#include "tests/support/program_folder.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

class KilledProcess : public testing::Test {
 protected:
  void SetUp() override {
    RunConfig config = tiny_config();
    config.epochs = 40;
    config.data.train_samples = 45;
    write_text_file(folder_.path("run.json"), to_json(config));
    write_model_profile(tiny_profile(config), folder_.path("model.json"));
    write_cluster(tiny_cluster(Bytes{600'000}), folder_.path("cluster.json"));
    write_cluster(
        make_uniform_cluster(3, Bytes{1 << 24},
                             {std::chrono::microseconds(5), BytesPerSecond{1'000'000'000}}),
        folder_.path("larger.json"));
    random_.seed(seed_);
  }

  // Ends it with the signal after the delay, if it has not ended: its exit code, or minus the
  // signal.
  int train(const std::string& out, const std::string& cluster, int signal, microseconds delay) {
    const std::filesystem::path program =
        std::filesystem::path(FRAZIL_PROGRAM_FOLDER) / "frazil-train";
    const pid_t child = ::fork();
    if (child == 0) {
      if (::chdir(folder_.path("").c_str()) != 0) _exit(99);
      const int answer = ::open((out + ".json").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      const int errors = ::open((out + ".txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(answer, 1);
      ::dup2(errors, 2);
      ::execl(program.c_str(), program.c_str(), "--run", "run.json", "--profile", "model.json",
              "--cluster", cluster.c_str(), "--out", out.c_str(), "--checkpoint-every", "10",
              "--resume", "--json", "--quiet", static_cast<char*>(nullptr));
      _exit(99);
    }
    const Clock::time_point end = Clock::now() + delay;
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (signal != 0 && Clock::now() >= end) {
        ::kill(child, signal);
        signal = 0;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string journal(const std::string& out) const {
    const std::string path = folder_.path(out + "/checkpoints/steps.journal");
    return std::filesystem::exists(path) ? read_text_file(path) : "";
  }
  std::string answer(const std::string& out) const {
    return read_text_file(folder_.path(out + ".json"));
  }
  std::string errors(const std::string& out) const {
    return read_text_file(folder_.path(out + ".txt"));
  }
  std::string weight_hash(const std::string& out) const {
    const std::string text = answer(out);
    const std::size_t place = text.find("\"weight_hash\": ");
    return place == std::string::npos ? "none" : text.substr(place, 33);
  }
  void expect_no_temporary(const std::string& out) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path(out))) {
      EXPECT_EQ(entry.path().filename().string().find("tmp"), std::string::npos) << entry.path();
    }
  }
  // Of a run that nothing happens to, and how long it took.
  microseconds train_whole() {
    const Clock::time_point begin = Clock::now();
    EXPECT_EQ(train("whole", "cluster.json", 0, {}), 0) << errors("whole");
    return std::chrono::duration_cast<microseconds>(Clock::now() - begin);
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_;
};

TEST_F(KilledProcess, GoesOnToTheSameBitsAndLosesNoStep) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
  const microseconds time = train_whole();
  int kills = 0;
  for (int life = 0; life < 6; ++life) {
    const std::string before = journal("killed");
    const microseconds delay(random_() % static_cast<std::uint64_t>(time.count()));
    const std::string cluster = life % 2 == 0 ? "cluster.json" : "larger.json";
    const int code = train("killed", cluster, SIGKILL, delay);
    ASSERT_TRUE(code == -SIGKILL || code == 0) << code << " " << errors("killed");
    kills += code == -SIGKILL ? 1 : 0;
    // Whole records that were there are there still, to the byte.
    const std::size_t whole_records = before.size() / 64 * 64;
    EXPECT_EQ(journal("killed").substr(0, whole_records), before.substr(0, whole_records));
  }
  ASSERT_EQ(train("killed", "cluster.json", 0, {}), 0) << errors("killed");
  EXPECT_EQ(weight_hash("killed"), weight_hash("whole"));
  EXPECT_EQ(journal("killed"), journal("whole"));
  EXPECT_EQ(journal("killed").size(), 64U * 241);
  expect_no_temporary("killed");
  std::printf("%d kills\n", kills);
}

TEST_F(KilledProcess, AskedToStopLeavesACheckpointAndTheCodeOfTheSignal) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
  (void)train_whole();
  int stops = 0;
  for (const int signal : {SIGTERM, SIGINT}) {
    const int code = [&] {
      microseconds delay(0);
      for (int tries = 0;; ++tries) {
        delay += std::chrono::milliseconds(100);
        const int ended = train("stopped", "cluster.json", signal, delay);
        // Too early for its handlers: it ended as any process does.
        if (ended != -signal || tries == 100) return ended;
      }
    }();
    if (code == 0) continue;
    ++stops;
    EXPECT_EQ(code, 128 + signal) << errors("stopped");
    EXPECT_NE(errors("stopped").find("--resume goes on from"), std::string::npos);
    EXPECT_NE(answer("stopped").find("\"stopped_at_step\": "), std::string::npos);
    const std::size_t steps = journal("stopped").size() / 64 - 1;
    const std::string digits = std::to_string(steps);
    EXPECT_TRUE(std::filesystem::exists(folder_.path("stopped/checkpoints/step-" +
                                                     std::string(12 - digits.size(), '0') + digits +
                                                     ".safetensors")))
        << steps;
  }
  EXPECT_GE(stops, 1);
  ASSERT_EQ(train("stopped", "cluster.json", 0, {}), 0) << errors("stopped");
  EXPECT_EQ(weight_hash("stopped"), weight_hash("whole"));
  EXPECT_EQ(journal("stopped"), journal("whole"));
  expect_no_temporary("stopped");
}

TEST_F(KilledProcess, FlagsThatCannotBeFollowedAreRefused) {
  const std::string train = "--run run.json --profile model.json --cluster cluster.json ";
  for (const std::string flags :
       {"--resume --out out", "--checkpoint-every 4", "--checkpoint-every 0 --out out",
        "--checkpoint-every 4 --out run.json"}) {
    SCOPED_TRACE(flags);
    const Outcome outcome = folder_.run("train", train + flags);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("frazil train: "), 0U) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  }
  const std::string begin = train + "--steps 5 --quiet --checkpoint-every 2 --out out";
  EXPECT_EQ(folder_.run("train", begin).code, 0);
  const Outcome again = folder_.run("train", begin);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("expected --resume to go on with it, or another folder"),
            std::string::npos)
      << again.err;
  EXPECT_NE(folder_.run("train", "--help").out.find("exit code 143 or 130"), std::string::npos);
}

}  // namespace
}  // namespace frazil
