#pragma once
// Silences takes note, on any thread, of processes that are not heard of, until the run comes round
// to them between two steps.

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/control/control_group.h"

namespace frazil {

class Silences {
 public:
  // `tell` is called at once, by the thread that notes.
  explicit Silences(std::function<void(const Silence&)> tell) : tell_(std::move(tell)) {}

  void note(const Silence& silence) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      noted_.push_back(silence);
    }
    if (tell_) tell_(silence);
  }
  // Returns those that were noted since the last call.
  std::vector<Silence> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(noted_, {});
  }

 private:
  std::function<void(const Silence&)> tell_;
  std::mutex mutex_;  // guards the next one
  std::vector<Silence> noted_;
};

}  // namespace frazil
