#pragma once
// A file system in which the call of a given number goes wrong.

#include <memory>

#include "exec/disk/file_system.h"

namespace frazil {

// The process ends in the middle of a call.
struct Crash {};

enum class Fault { kCrash, kNoSpace, kInputOutput };

// Counts calls; does nothing wrong before `arm`.
class FaultyFiles {
 public:
  explicit FaultyFiles(FileSystem real);

  FileSystem files();
  int calls() const { return state_->calls; }
  // The call after `calls` more; of a write, half is done first. After a crash no call is done.
  void arm(Fault fault, int calls);
  bool has_struck() const { return state_->left < 0; }
  void disarm() { *state_ = State{}; }
  // Every write takes no more bytes than this at once, and every third call is interrupted.
  void hinder(std::size_t largest_write) { state_->largest_write = largest_write; }

 private:
  struct State {
    int calls = 0;
    int left = 1 << 30;
    Fault fault = Fault::kCrash;
    std::size_t largest_write = std::size_t(-1);
  };
  // 0, or the error that the call gives.
  static int strike(State& state);

  FileSystem real_;
  std::shared_ptr<State> state_;
};

}  // namespace frazil
