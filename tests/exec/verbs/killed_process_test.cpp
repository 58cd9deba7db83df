// Real processes are killed or asked to stop at random moments.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "profiles/json.h"
#include "profiles/model_profile_json.h"
#include "tests/exec/support/journal_steps.h"
#include "tests/exec/support/tiny_run.h"
#include "tests/support/program_folder.h"
#include "tests/support/write_cluster.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr Step kSteps = 240;
constexpr int kKillsOfARun = 5;

// Returns twelve unless told otherwise: ./test.sh --soak asks for a hundred.
int count_kills() {
  const char* const kills = std::getenv("FRAZIL_KILLS");
  return kills == nullptr ? 12 : std::stoi(kills);
}

// Blocks freeze, freeze deeper, freeze elsewhere, thaw, and freeze again up to the head.
FreezeTrace make_masks(const ModelProfile& profile) {
  FreezeTrace trace;
  trace.model_hash = model_hash(profile);
  trace.blocks = profile.blocks;
  trace.steps = kSteps;
  trace.batch_size = 8;
  const auto add = [&](Step step, const std::string& mask) {
    trace.events.push_back({step, MaskEvent{FreezeMask::parse(mask, "masks", 1)}});
  };
  add(0, "11111");
  add(30, "00111");
  add(75, "00011");
  add(118, "01011");
  add(150, "11111");
  add(170, "00011");
  add(210, "00001");
  return trace;
}

class KilledProcess : public testing::Test {
 protected:
  void SetUp() override {
    RunConfig config = default_config();
    config.epochs = 40;
    config.data.train_samples = 45;
    const ModelProfile profile = tiny_profile(config);
    write_freeze_trace(make_masks(profile), folder_.path("masks.jsonl"));
    config.freeze.policy = TraceFreeze{.path = "masks.jsonl"};
    write_text_file(folder_.path("run.json"), to_json(config));
    config.cache.kind = CacheConfig::Kind::kOn;
    config.cache.memory = Bytes{10 * 17 * 32 * 4};  // for ten samples, the others on disk
    config.cache.disk = Bytes{1 << 20};
    config.cache.folder = "cache";
    std::filesystem::create_directories(folder_.path("cache"));
    write_text_file(folder_.path("cached.json"), to_json(config));
    write_model_profile(profile, folder_.path("model.json"));
    write_cluster(tiny_cluster(Bytes{600'000}), folder_.path("cluster.json"));
    for (const int devices : {1, 3, 4}) {
      const std::string name = "devices-" + std::to_string(devices) + ".json";
      write_cluster(
          make_uniform_cluster(devices, Bytes{1 << 24},
                               {std::chrono::microseconds(5), BytesPerSecond{1'000'000'000}}),
          folder_.path(name));
    }
    random_.seed(seed_);
  }

  pid_t start(const std::string& run, const std::string& out, const std::string& cluster) const {
    const std::filesystem::path program =
        std::filesystem::path(FRAZIL_PROGRAM_FOLDER) / "frazil-train";
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (::chdir(folder_.path("").c_str()) != 0) _exit(99);
    const int answer = ::open((out + ".json").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int errors = ::open((out + ".txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(answer, 1);
    ::dup2(errors, 2);
    // A folder that no process has begun in holds nothing to go on with.
    const char* const resume =
        std::filesystem::exists(out + "/inputs/flags.json") ? "--resume" : "--quiet";
    ::execl(program.c_str(), program.c_str(), "--run", run.c_str(), "--profile", "model.json",
            "--cluster", cluster.c_str(), "--out", out.c_str(), "--checkpoint-every", "10",
            "--json", resume, resume == std::string("--quiet") ? nullptr : "--quiet",
            static_cast<char*>(nullptr));
    _exit(99);
  }
  // Waits for the child, and sends it the signal once `is_due`. Returns its exit code, or minus the
  // signal that ended it.
  static int await(pid_t child, int signal, const std::function<bool()>& is_due) {
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (signal != 0 && is_due()) {
        ::kill(child, signal);
        signal = 0;
      }
      std::this_thread::sleep_for(microseconds(500));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int train(const std::string& out, const std::string& cluster, int signal, microseconds delay) {
    const Clock::time_point end = Clock::now() + delay;
    return await(start("run.json", out, cluster), signal, [&] { return Clock::now() >= end; });
  }
  std::string journal(const std::string& out) const {
    const std::string path = folder_.path(out + "/checkpoints/steps.journal");
    return std::filesystem::exists(path) ? read_text_file(path) : "";
  }
  Step count_steps(const std::string& out) const {
    return static_cast<Step>(list_steps(journal(out)).size());
  }
  std::string answer(const std::string& out) const {
    return read_text_file(folder_.path(out + ".json"));
  }
  std::string errors(const std::string& out) const {
    return read_text_file(folder_.path(out + ".txt"));
  }
  std::string weight_hash(const std::string& out) const {
    const std::string text = answer(out);
    const std::size_t place = text.find("\"state_hash\": ");
    return place == std::string::npos ? "none" : text.substr(place, 33);
  }
  // Returns the newest checkpoint that the event log tells of.
  Step last_checkpoint(const std::string& out) const {
    const std::string path = folder_.path(out + "/events.jsonl");
    Step last = 0;
    if (!std::filesystem::exists(path)) return last;
    std::string text = read_text_file(path);
    text.resize(text.rfind('\n') + 1);
    for (const FreezeEvent& event : parse_freeze_trace(text, path).events) {
      if (const auto* saved = std::get_if<CheckpointEvent>(&event.what)) last = saved->of;
    }
    return last;
  }
  // Expects nothing but what a run that was never disturbed leaves.
  void expect_no_leftover(const std::string& out) const {
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path("cache")));
    const std::set<std::string> known{
        "trace.jsonl", "events.jsonl", "plan.json",    "predicted.csv",       "measured.csv",
        "memory.json", "trace.json",   "run.json",     "steps.journal",       "flags.json",
        "masks.jsonl", "model.json",   "cluster.json", "weights.safetensors", "kernels.json"};
    int checkpoints = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path(out))) {
      const std::string name = entry.path().filename().string();
      const bool is_checkpoint = name.starts_with("step-") && name.ends_with(".safetensors");
      checkpoints += is_checkpoint ? 1 : 0;
      EXPECT_TRUE(entry.is_directory() || is_checkpoint || known.contains(name)) << entry.path();
    }
    EXPECT_EQ(checkpoints, 2);
  }
  // Trains a run that nothing happens to. Returns how long it took.
  microseconds train_whole() {
    const Clock::time_point begin = Clock::now();
    EXPECT_EQ(train("whole", "cluster.json", 0, {}), 0) << errors("whole");
    return std::chrono::duration_cast<microseconds>(Clock::now() - begin);
  }
  int count_random(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  // Kills a process a few milliseconds after the journal has so many steps, or at a random time
  // after its start where the journal has them already. Returns whether the process was killed.
  bool kill_at(Step steps, const std::string& cluster, microseconds longest) {
    const std::string before = journal("killed");
    const Step reported = last_checkpoint("killed");
    const bool is_early = count_steps("killed") >= steps;
    const microseconds delay(is_early ? count_random(static_cast<int>(longest.count()))
                                      : count_random(5000));
    std::optional<Clock::time_point> end;
    const int code = await(start("cached.json", "killed", cluster), SIGKILL, [&] {
      if (!end && (is_early || count_steps("killed") >= steps)) end = Clock::now() + delay;
      return end && Clock::now() >= *end;
    });
    EXPECT_TRUE(code == -SIGKILL || code == 0) << code << " " << errors("killed");
    // Every whole record that was there, acknowledged or not, is there still, to the byte.
    const std::size_t whole_records = before.size() / 64 * 64;
    EXPECT_EQ(journal("killed").substr(0, whole_records), before.substr(0, whole_records));
    EXPECT_GE(count_steps("killed"), reported) << "the steps before a checkpoint that was told of";
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path("cache"))) << "a cache of a killed process";
    return code == -SIGKILL;
  }
  void expect_whole() {
    EXPECT_EQ(weight_hash("killed"), weight_hash("whole"));
    EXPECT_EQ(journal("killed"), journal("whole"));
    // The first line, the kernels, and the weights of each tenth step.
    EXPECT_EQ(journal("killed").size(), 64U * (kSteps + 2 + kSteps / 10));
    const Outcome checked = folder_.run("check", "killed");
    EXPECT_EQ(checked.code, 0) << checked.out;
    expect_no_leftover("killed");
  }

  ProgramFolder folder_{testing::UnitTest::GetInstance()->current_test_info()->name()};
  std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_;
};

std::set<std::string> list_plans(const FreezeTrace& trace) {
  std::set<std::string> plans;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* plan = std::get_if<PlanEvent>(&event.what)) plans.insert(plan->summary);
  }
  return plans;
}

std::int64_t read_count(const std::string& answer, const std::string& key) {
  const nlohmann::json json = nlohmann::json::parse(answer);
  return json.contains("cache") ? json.at("cache").at(key).get<std::int64_t>() : 0;
}

// The run that nothing happens to has no cache, and one cluster throughout.
TEST_F(KilledProcess, GoesOnToTheSameBitsAndLosesNoStep) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed_));
  const microseconds time = train_whole();
  const std::vector<std::string> clusters{"cluster.json", "devices-3.json", "devices-1.json",
                                          "devices-4.json"};
  std::size_t life = 0;
  std::int64_t found = 0;
  std::int64_t on_disk = 0;
  int kills = 0;
  while (kills < count_kills()) {
    std::vector<Step> moments;
    for (int kill = 0; kill < kKillsOfARun; ++kill) moments.push_back(count_random(kSteps));
    std::sort(moments.begin(), moments.end());
    std::filesystem::remove_all(folder_.path("killed"));
    for (const Step moment : moments) {
      kills += kill_at(moment, clusters[life++ % clusters.size()], time / 2) ? 1 : 0;
      ASSERT_FALSE(HasFailure()) << "kill " << kills << ", moment " << moment;
    }
    const Step reported = last_checkpoint("killed");
    // The process was killed when it had written all: its trace stays.
    const bool has_ended = std::filesystem::exists(folder_.path("killed/trace.jsonl"));
    const std::string& cluster = clusters[life++ % clusters.size()];
    ASSERT_EQ(await(start("cached.json", "killed", cluster), 0, {}), 0) << errors("killed");
    expect_whole();
    found += read_count(answer("killed"), "found");
    on_disk += read_count(answer("killed"), "disk_bytes");
    const FreezeTrace trace = read_freeze_trace(folder_.path("killed/trace.jsonl"));
    if (reported > 0 && !has_ended) {
      EXPECT_GE(std::stoll(trace.provenance.at("resumed_from_step")), reported);
    }
    EXPECT_EQ(trace.events.front().step, 0) << "the trace of the whole run";
    EXPECT_GE(list_plans(trace).size(), 3U);
    ASSERT_FALSE(HasFailure()) << "after " << kills << " kills";
  }
  EXPECT_GT(found, 0);
  EXPECT_GT(on_disk, 0);
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
        // The signal came too early for its handlers, so the process ended as any does, or before
        // there was a step to keep.
        const bool is_early = ended == -signal ||
                              errors("stopped").find("before the first step") != std::string::npos;
        if (!is_early || tries == 100) return ended;
      }
    }();
    if (code == 0) continue;
    ++stops;
    EXPECT_EQ(code, 128 + signal) << errors("stopped");
    EXPECT_NE(errors("stopped").find("--resume goes on from"), std::string::npos);
    EXPECT_NE(answer("stopped").find("\"stopped_at_step\": "), std::string::npos);
    const auto steps = static_cast<std::size_t>(count_steps("stopped"));
    const Outcome report = folder_.run("report", "stopped --out report.html");
    EXPECT_EQ(report.code, 0) << report.err;
    EXPECT_NE(report.out.find("interrupted, or running still: this is of the first " +
                              std::to_string(steps) + " of 240 steps"),
              std::string::npos)
        << report.out;
    const std::string digits = std::to_string(steps);
    EXPECT_TRUE(std::filesystem::exists(folder_.path("stopped/checkpoints/step-" +
                                                     std::string(12 - digits.size(), '0') + digits +
                                                     ".safetensors")))
        << steps;
  }
  EXPECT_GE(stops, 1);
  ASSERT_EQ(train("stopped", "cluster.json", 0, {}), 0) << errors("stopped");
  EXPECT_EQ(weight_hash("stopped"), weight_hash("whole"));
  // The journal has the weights of the steps at which it was stopped besides.
  EXPECT_EQ(list_steps(journal("stopped")), list_steps(journal("whole")));
  expect_no_leftover("stopped");
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
  EXPECT_NE(
      again.err.find("out: found a finished run of 5 steps, expected --resume with --steps to "
                     "give it more steps, --force to replace it, or another folder"),
      std::string::npos)
      << again.err;
  EXPECT_NE(folder_.run("train", "--help").out.find("exit code 143 or 130"), std::string::npos);
}

}  // namespace
}  // namespace frazil
