#pragma once
// Runs other programs, one at a time, with nobody at the keyboard: what they say goes to files, and
// a signal that asks this process to end is handed on to the one that runs.

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

namespace frazil {

// Returns the program of a verb, which lies beside this one. Throws std::runtime_error if it is not
// there.
std::filesystem::path find_sibling(const std::string& program);

struct ChildCall {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::filesystem::path out;  // takes standard output
  std::filesystem::path err;  // takes standard error
};

struct ChildEnd {
  int code = 0;    // exit code; 0 if a signal ended it
  int signal = 0;  // that ended it; 0: none
};

// While an object lives, SIGTERM and SIGINT wait for run() or stopped_by(). There is one at a time.
class ChildPrograms {
 public:
  ChildPrograms();
  ~ChildPrograms();
  ChildPrograms(const ChildPrograms&) = delete;
  ChildPrograms& operator=(const ChildPrograms&) = delete;

  // Runs a program to its end. It is the leader of a process group of its own, so that a signal
  // from the terminal reaches it once, from here. If this process is killed, so is the program, by
  // SIGKILL: nothing that nobody waits for goes on. Throws InputError if it cannot be started.
  ChildEnd run(const ChildCall& call);
  // Returns the first signal that asked this process to end, or 0.
  int stopped_by();

 private:
  ChildEnd wait_for(pid_t child);
  void note(int signal);

  sigset_t watched_{};
  sigset_t before_{};
  int stopped_by_ = 0;
};

}  // namespace frazil
