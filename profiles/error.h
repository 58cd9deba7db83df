#pragma once
// The kinds of failure that all folders share: bad input (somebody's file or flag, one sentence,
// exit code 2), an infeasible task, a lost peer, and a broken invariant (a bug of ours). Expected
// absence is a value and never thrown.

#include <stdexcept>
#include <string>
#include <string_view>

namespace frazil {

// Returns `text` with control bytes and bytes that are not UTF-8 written as "\xff", so that a
// message stays one line whatever a file name or an input holds.
std::string to_one_line(std::string_view text);

// The exit codes of Frazil's programs. A program that signal n ends has 128 + n.
enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kBadInput = 2,
  kInfeasible = 3,
  kVerifyFailed = 4,
  kVerifyInconclusive = 5,
  kPeerLost = 6,
  kOutOfMemory = 7,
  kStorage = 8,
  kNoPermission = 9,
  kDiverged = 10,
  kPleaseRestart = 75,
};

// Bad usage or input, exit code 2. what() is one sentence: "plan.json:12: found X, expected Y".
// Line 0 (a flag, an unreadable file) is left out of the sentence. A file that the system refuses
// has exit code 8 or 9 (fail_system).
class InputError : public std::runtime_error {
 public:
  InputError(std::string file, int line, std::string found, std::string expected,
             ExitCode code = ExitCode::kBadInput);

  const std::string& file() const { return file_; }
  int line() const { return line_; }
  const std::string& found() const { return found_; }
  const std::string& expected() const { return expected_; }
  ExitCode code() const { return code_; }

 private:
  std::string file_;
  int line_;
  std::string found_;
  std::string expected_;
  ExitCode code_;
};

// Throws InputError for a system call that gave `error` (an errno) on a file: found the error "No
// space left on device" of write. The code is 8 where storage is full or fails, 9 where a
// permission is missing, else 2. `call` may be empty.
[[noreturn]] void fail_system(const std::string& file, int error, const std::string& call,
                              const std::string& expected);

// A plan or graph that is valid but infeasible (no plan fits, or an interpreter cannot perform an
// action), exit code 3. what() is one sentence.
class InfeasibleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another device of the run failed or left, so what this one waits for never comes. Exit code 6.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A training whose loss, gradients or weights are not finite, exit code 10. what() is one sentence
// that names the step and what is not finite.
class Diverged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws std::logic_error "file:line: text"; the body of ENSURE.
[[noreturn]] void fail_ensure(const char* file, int line, const std::string& text);

}  // namespace frazil

// A condition that holds unless Frazil itself has a bug; checked in every build.
#define ENSURE(condition, text)                                        \
  do {                                                                 \
    if (!(condition)) ::frazil::fail_ensure(__FILE__, __LINE__, text); \
  } while (false)
