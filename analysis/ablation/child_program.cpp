#include "analysis/ablation/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <stdexcept>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr mode_t kFileMode = 0644;

// What a child begins with: its own process group, the signals as they were before this process
// watched them, and its files.
class ChildStart {
 public:
  ChildStart(const ChildCall& call, const sigset_t& mask) {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&files_);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, call.out.c_str(), flags, kFileMode);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, call.err.c_str(), flags, kFileMode);
  }
  ~ChildStart() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  ChildStart(const ChildStart&) = delete;
  ChildStart& operator=(const ChildStart&) = delete;

  pid_t spawn(const ChildCall& call) {
    std::vector<std::string> words{call.program.string()};
    words.insert(words.end(), call.arguments.begin(), call.arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t child = 0;
    const int error =
        posix_spawn(&child, call.program.c_str(), &files_, &attributes_, pointers.data(), environ);
    if (error != 0) fail_system(call.program.string(), error, "spawn", "a program to start");
    return child;
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t files_{};
};

}  // namespace

std::filesystem::path find_sibling(const std::string& program) {
  std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
  if (access(path.c_str(), X_OK) == 0) return path;
  throw std::runtime_error(fmt::format(
      "found no {}, which trains and is built with libtorch: build all programs where ./setup.sh "
      "has fetched libtorch, or install the component with libtorch",
      path.string()));
}

ChildPrograms::ChildPrograms() {
  sigemptyset(&watched_);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&watched_, signal);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

ChildPrograms::~ChildPrograms() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

void ChildPrograms::note(int signal) {
  if (signal != SIGCHLD && stopped_by_ == 0) stopped_by_ = signal;
}

int ChildPrograms::stopped_by() {
  const timespec now{};
  for (int signal = 0; (signal = sigtimedwait(&watched_, nullptr, &now)) > 0;) note(signal);
  return stopped_by_;
}

ChildEnd ChildPrograms::run(const ChildCall& call) {
  return wait_for(ChildStart(call, before_).spawn(call));
}

// SIGCHLD may be that of a child before, so it only says that it is time to look.
ChildEnd ChildPrograms::wait_for(pid_t child) {
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
      if (WIFEXITED(status)) return {.code = WEXITSTATUS(status)};
    }
    const int signal = sigwaitinfo(&watched_, nullptr);
    if (signal < 0 || signal == SIGCHLD) continue;
    note(signal);
    kill(child, signal);
  }
}

}  // namespace frazil
