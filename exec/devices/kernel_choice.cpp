#include "exec/devices/kernel_choice.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "exec/devices/kernel_facts.h"
#include "exec/devices/numerics.h"
#include "exec/devices/steady_time.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFormat = "frazil.kernel_choice";

// What a child tells its parent.
struct Answer {
  bool holds = false;
  std::int64_t time_ns = 0;
};

// Times a forward and both backwards of linear layers as a small transformer has them, as the least
// of several rounds.
Duration time_linear_layers() {
  constexpr std::array<std::array<std::int64_t, 2>, 4> kShapes{
      {{64, 192}, {192, 192}, {192, 768}, {768, 192}}};
  constexpr std::int64_t kRows = 136;
  constexpr int kRounds = 30;
  Duration total{0};
  for (const auto& [in, out] : kShapes) {
    const at::Tensor weight = at::ones({out, in});
    const at::Tensor x = at::ones({kRows, in});
    const at::Tensor gradient = at::ones({kRows, out});
    Duration least{std::numeric_limits<std::int64_t>::max()};
    for (int round = 0; round < kRounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      (void)at::matmul(x, weight.t());
      (void)at::matmul(gradient, weight);
      (void)at::matmul(gradient.t(), x);
      least = std::min(least, since(start));
    }
    total += least;
  }
  return total;
}

[[noreturn]] void answer_as_child(const std::string& branch, int to) {
  ::setenv("MKL_CBWR", branch.c_str(), /*overwrite=*/1);
  Answer answer;
  try {
    at::set_num_threads(1);
    answer.holds = !check_numerics().has_value();
    if (answer.holds) answer.time_ns = time_linear_layers().count();
  } catch (...) {
    answer = {};
  }
  const bool is_told = ::write(to, &answer, sizeof answer) == sizeof answer;
  ::_exit(is_told ? 0 : 1);
}

using Clock = std::chrono::steady_clock;

// Returns whether there is something to read before the patience ends.
bool is_answered(int from, Duration patience) {
  const Clock::time_point end = Clock::now() + patience;
  pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
  for (int ready = -1; ready < 0;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    ready = ::poll(&waiting, 1, static_cast<int>(std::max(left, decltype(left){0})));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
  return false;
}

std::optional<Answer> read_answer(int from, Duration patience) {
  if (!is_answered(from, patience)) return std::nullopt;
  Answer answer;
  ssize_t size = 0;
  do {
    size = ::read(from, &answer, sizeof answer);
  } while (size < 0 && errno == EINTR);
  return size == sizeof answer ? std::optional(answer) : std::nullopt;
}

// Whoever gets other bits than yesterday can read here why.
void tell_portable(const std::string& reason) {
  std::fprintf(stderr, "frazil: the portable kernels are taken: %s\n", to_one_line(reason).c_str());
}

// A child that does not answer in time is ended, stopped or not. Where none can be started, what
// needs more than this says so.
std::optional<Answer> try_branch(const std::string& branch, Duration patience) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) answer_as_child(branch, ends[1]);
  ::close(ends[1]);
  const std::optional<Answer> answer = child > 0 ? read_answer(ends[0], patience) : std::nullopt;
  ::close(ends[0]);
  if (child > 0 && !answer) {
    ::kill(child, SIGKILL);
    tell_portable("a process that tried kernels did not answer");
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

std::string asked_for() {
  const KernelFacts facts = present_kernels();
  return facts.processor + " (" + facts.features + "), torch " + facts.torch;
}

std::string text_of(const std::vector<KernelTrial>& trials) {
  nlohmann::ordered_json json{{"format", kFormat}, {"version", 1}, {"for", asked_for()}};
  for (const KernelTrial& trial : trials) {
    json["trials"].push_back(
        {{"branch", trial.branch}, {"holds", trial.holds}, {"time_ns", trial.time.count()}});
  }
  return json.dump(2) + "\n";
}

// Returns none for trials of another processor or torch, or of other branches.
std::optional<std::vector<KernelTrial>> read_trials(const fs::path& file) {
  try {
    JsonFields fields(parse_json(read_text_file(file), file.string()));
    expect_format(fields, kFormat, 1);
    if (fields.required("for").text() != asked_for()) return std::nullopt;
    std::vector<KernelTrial> trials;
    for (const JsonCursor& item : fields.required("trials").items()) {
      JsonFields trial(item);
      trials.push_back({trial.required("branch").text(), trial.required("holds").boolean(),
                        Duration{trial.required("time_ns").integer(0, kLargestQuantity)}});
    }
    const std::vector<std::string> branches = list_branches();
    const bool is_whole = std::equal(
        trials.begin(), trials.end(), branches.begin(), branches.end(),
        [](const KernelTrial& trial, const std::string& branch) { return trial.branch == branch; });
    return is_whole ? std::optional(trials) : std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// Holds a lock of this user while it lives; without a file that can be locked it holds none.
class TrialLock {
 public:
  TrialLock(const fs::path& file, Duration patience)
      : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ >= 0) wait(patience);
  }
  ~TrialLock() {
    if (file_ >= 0) ::close(file_);
  }
  TrialLock(const TrialLock&) = delete;
  TrialLock& operator=(const TrialLock&) = delete;

  bool is_held_by_another() const { return is_held_by_another_; }

 private:
  // flock() itself waits without end, also for a process that has been stopped.
  void wait(Duration patience) {
    const Clock::time_point end = Clock::now() + patience;
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      is_held_by_another_ = errno == EWOULDBLOCK;
      if (errno == EINTR) continue;
      if (!is_held_by_another_ || Clock::now() >= end) return;
      std::this_thread::sleep_for(kGlance);
    }
    is_held_by_another_ = false;
  }

  static constexpr std::chrono::milliseconds kGlance{50};

  int file_;
  bool is_held_by_another_ = false;
};

}  // namespace

void prepare_kernels(Kernels kernels) {
  const bool is_named = std::getenv("MKL_CBWR") != nullptr;
  const std::optional<fs::path> folder =
      kernels == Kernels::kFastest && !is_named ? cache_folder() : std::nullopt;
  const auto trials = folder ? known_trials(*folder) : std::nullopt;
  prepare_numerics(trials ? fastest_branch(*trials) : portable_branch());
}

std::string portable_branch() {
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") != 0 ? "AVX2,STRICT" : "AVX2";
}

std::vector<std::string> list_branches() {
  std::vector<std::string> branches{portable_branch()};
  const bool is_intel = __builtin_cpu_is("intel") != 0;
  const bool is_wide =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  for (const std::string branch : {"AVX2,STRICT", "AVX512,STRICT", "AVX512"}) {
    const bool is_there = is_wide || !branch.starts_with("AVX512");
    const bool is_safe = !is_intel || branch.ends_with(",STRICT");
    if (branch != branches.front() && is_there && is_safe) branches.push_back(branch);
  }
  return branches;
}

std::optional<std::vector<KernelTrial>> try_branches(const std::vector<std::string>& branches,
                                                     Duration patience) {
  constexpr int kPasses = 2;  // other programs may slow one of them
  std::vector<KernelTrial> trials(branches.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const std::optional<Answer> answer = try_branch(branches[i], patience);
      if (!answer) return std::nullopt;
      const Duration time{answer->time_ns};
      const bool is_first = pass == 0;
      trials[i] = {branches[i], answer->holds && (is_first || trials[i].holds),
                   is_first ? time : std::min(time, trials[i].time)};
    }
  }
  return trials;
}

std::string fastest_branch(const std::vector<KernelTrial>& trials) {
  ENSURE(!trials.empty(), "the portable branch at least");
  const KernelTrial* best = &trials.front();
  for (const KernelTrial& trial : trials) {
    if (!trial.holds) continue;
    if (!best->holds || trial.time.count() < best->time.count() / 100 * 97) best = &trial;
  }
  return best->branch;
}

std::optional<std::string> other_branch(const std::vector<KernelTrial>& trials) {
  const std::string fastest = fastest_branch(trials);
  if (fastest != trials.front().branch) return trials.front().branch;
  const auto other = std::find_if(trials.rbegin(), trials.rend(), [&](const KernelTrial& trial) {
    return trial.holds && trial.branch != fastest;
  });
  if (other == trials.rend()) return std::nullopt;
  return other->branch;
}

std::optional<std::vector<KernelTrial>> known_trials(const fs::path& folder, Duration patience) {
  // A home may be shared by machines with other processors.
  const fs::path file = folder / ("kernels-" + to_hex(hash_text(asked_for())) + ".json");
  if (auto known = read_trials(file)) return known;
  std::error_code error;
  fs::create_directories(folder, error);
  const TrialLock lock(folder / "kernels.lock", patience);
  if (auto known = read_trials(file)) return known;
  if (lock.is_held_by_another()) {
    tell_portable("another process has held " + (folder / "kernels.lock").string() + " too long");
    return std::nullopt;
  }
  const auto trials = try_branches(list_branches(), patience);
  // A machine that breaks the rules under every branch may be mended.
  const bool holds = trials && std::any_of(trials->begin(), trials->end(),
                                           [](const KernelTrial& trial) { return trial.holds; });
  if (!holds) return std::nullopt;
  try {
    write_text_file(file, text_of(*trials));
  } catch (const InputError&) {
    return std::nullopt;
  }
  return trials;
}

std::optional<fs::path> cache_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && fs::path(cache).is_absolute()) return fs::path(cache) / "frazil";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute()) return fs::path(home) / ".cache" / "frazil";
  return std::nullopt;
}

}  // namespace frazil
