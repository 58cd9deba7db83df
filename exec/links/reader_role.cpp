#include "exec/links/reader_role.h"

#include <utility>

namespace frazil {

bool ReaderRole::take_or_list(Sleeper& sleeper) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_taken_) return is_taken_ = true;
  sleepers_.push_back(&sleeper);
  return false;
}

bool ReaderRole::try_take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_taken_) return false;
  return is_taken_ = true;
}

void ReaderRole::give_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_taken_ = false;
  call_one();
}

void ReaderRole::leave_list(Sleeper& sleeper, bool follows) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(sleepers_, &sleeper);
  bool was_called = false;
  {
    const std::lock_guard<std::mutex> own(*sleeper.mutex);
    was_called = std::exchange(sleeper.is_called, false);
  }
  if (was_called && !follows && !is_taken_) call_one();
}

void ReaderRole::call_one() {
  if (sleepers_.empty()) return;
  Sleeper& next = *sleepers_.front();
  {
    const std::lock_guard<std::mutex> own(*next.mutex);
    next.is_called = true;
  }
  // Condition variables are shared with others who wait for other things.
  next.wake->notify_all();
}

}  // namespace frazil
