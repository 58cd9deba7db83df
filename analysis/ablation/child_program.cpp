#include "analysis/ablation/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr mode_t kFileMode = 0644;
constexpr int kNotStarted = 127;  // exit code, as shells have it

// The reading end tells which error kept the other process from its program: it says nothing where
// that has begun, for then the writing end is closed.
class StartPipe {
 public:
  StartPipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) fail_system("a pipe", errno, "pipe", "a pipe");
  }
  ~StartPipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  StartPipe(const StartPipe&) = delete;
  StartPipe& operator=(const StartPipe&) = delete;

  // Of the new process: tells the last error and ends.
  [[noreturn]] void end_with_error() const {
    const int error = errno;
    (void)!write(ends_[1], &error, sizeof error);
    _exit(kNotStarted);
  }
  // Of the old process: returns the error, or 0.
  int wait_for_error() {
    close(std::exchange(ends_[1], -1));
    int error = 0;
    while (read(ends_[0], &error, sizeof error) < 0 && errno == EINTR) {
    }
    return error;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// What a child begins with: its own process group, the end that it shares with this process, the
// signals as they were before this process watched them, and its files. The new process calls
// nothing but what is safe after fork() in a program with threads.
class ChildStart {
 public:
  ChildStart(const ChildCall& call, const sigset_t& mask) : call_(call), mask_(mask) {
    words_.push_back(call.program.string());
    words_.insert(words_.end(), call.arguments.begin(), call.arguments.end());
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }

  pid_t spawn() {
    StartPipe pipe;
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) fail_system(words_.front(), errno, "fork", "a program to start");
    if (child == 0) become(parent, pipe);
    const int error = pipe.wait_for_error();
    if (error == 0) return child;
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    fail_system(words_.front(), error, "exec", "a program to start");
  }

 private:
  // A parent that ended before prctl() sends no signal any more.
  [[noreturn]] void become(pid_t parent, const StartPipe& pipe) {
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) pipe.end_with_error();
    if (getppid() != parent) _exit(kNotStarted);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    if (!open_as(STDIN_FILENO, "/dev/null", O_RDONLY) ||
        !open_as(STDOUT_FILENO, call_.out.c_str(), flags) ||
        !open_as(STDERR_FILENO, call_.err.c_str(), flags)) {
      pipe.end_with_error();
    }
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    execv(words_.front().c_str(), pointers_.data());
    pipe.end_with_error();
  }
  static bool open_as(int descriptor, const char* path, int flags) {
    const int file = open(path, flags | O_CLOEXEC, kFileMode);
    if (file < 0 || file == descriptor) return file >= 0 && fcntl(file, F_SETFD, 0) == 0;
    const bool is_there = dup2(file, descriptor) == descriptor;
    close(file);
    return is_there;
  }

  const ChildCall& call_;
  const sigset_t& mask_;
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
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
  return wait_for(ChildStart(call, before_).spawn());
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
