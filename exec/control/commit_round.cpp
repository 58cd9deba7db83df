#include "exec/control/commit_round.h"

#include <utility>

#include "exec/devices/tick_count.h"
#include "profiles/quantity_text.h"

namespace frazil {

void CommitRound::renew() {
  const std::lock_guard<std::mutex> lock(mutex_);
  undone_.reset();
}

void CommitRound::begin(Step step, int voters) {
  const std::lock_guard<std::mutex> lock(mutex_);
  step_ = step;
  voters_ = voters;
  notes_.clear();
  is_committed_ = false;
}

void CommitRound::vote(DeviceId device, Step step, const WaitLimit& limit, std::string note) {
  TickCount waited(limit.time());
  std::optional<std::vector<std::string>> notes;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ENSURE(step == step_, "a device votes for the step under way");
    notes_.push_back(std::move(note));
    if (static_cast<int>(notes_.size()) == voters_) notes = std::move(notes_);
  }
  if (notes) tell_ready_(step, std::move(*notes));
  if (spins()) look_until_([this] { return is_decided(); });
  std::unique_lock<std::mutex> lock(mutex_);
  while (!decided_.wait_for(lock, waited.tick(), [this] { return is_committed_ || undone_; })) {
    if (waited.is_over()) {
      throw PeerLost("rank " + std::to_string(device.value) + " waited " + to_text(limit.time()) +
                     " for the verdict on step " + std::to_string(step));
    }
  }
  if (!is_committed_) throw StepUndone(*undone_);
}

bool CommitRound::is_decided() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_committed_ || undone_;
}

void CommitRound::commit(Step step) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (step != step_ || undone_) return;
    is_committed_ = true;
  }
  decided_.notify_all();
}

void CommitRound::undo(const std::string& cause) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (undone_) return;
    undone_ = cause;
  }
  decided_.notify_all();
}

}  // namespace frazil
