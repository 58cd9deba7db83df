#include "exec/communication/settlement.h"

#include <utility>

#include "exec/devices/tick_count.h"

namespace frazil {

Settlement::Settlement(const WorldLinks& links, std::uint32_t epoch, int process,
                       std::set<int> others, std::function<void(const WorldCause&)> adopt)
    : links_(&links),
      epoch_(epoch),
      process_(process),
      others_(std::move(others)),
      adopt_(std::move(adopt)),
      awaited_(others_) {}

void Settlement::propose(const WorldCause& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // Somebody else's came first: nobody has to know of this one.
  if (proposer_) return adopt_(cause_);
  proposes_ = true;
  begin(process_, cause);
  for (const int other : others_) tell(other, false);
  settle_if_heard();
}

void Settlement::declare(const WorldCause& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (proposer_) return settle_if_heard();
  begin(process_, cause);
  settle();
}

void Settlement::take_cause(int process, bool is_settled, const WorldCause& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_settled_) {
    if (!is_settled) tell(process, true);
    return;
  }
  if (is_settled || !proposer_ || process < *proposer_) begin(process, cause);
  if (is_settled) {
    is_settled_ = true;
    settled_.notify_all();
    return;
  }
  // An answer, whether or not this process proposes as well: a proposal of its own does not say
  // that it has read the other's.
  links_->send(process, LinkSocket::kSteps, {.kind = FrameKind::kAnswer, .epoch = epoch_});
}

void Settlement::take_answer(int process) {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_.erase(process);
  settle_if_heard();
}

void Settlement::lose(int process) {
  const std::lock_guard<std::mutex> lock(mutex_);
  awaited_.erase(process);
  others_.erase(process);
  settle_if_heard();
}

void Settlement::wait() {
  TickCount waited(links_->moment, TickCount::Busy::kCounted);
  const auto is_over = [&] { return is_settled_; };
  do {
    if (links_->wait(mutex_, settled_, is_over, waited.tick())) return;
  } while (!waited.is_over());
  links_->look();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_settled_ && proposer_) settle();
}

void Settlement::begin(int proposer, const WorldCause& cause) {
  proposer_ = proposer;
  cause_ = cause;
  adopt_(cause_);
}

void Settlement::tell(int process, bool is_settled) const {
  links_->send(process, LinkSocket::kSteps,
               {.kind = FrameKind::kCause,
                .epoch = epoch_,
                .number = is_settled ? 1U : 0U,
                .text = encode_cause(cause_)});
}

void Settlement::settle_if_heard() {
  if (proposes_ && !is_settled_ && awaited_.empty()) settle();
}

void Settlement::settle() {
  is_settled_ = true;
  for (const int other : others_) tell(other, true);
  settled_.notify_all();
  links_->nudge();
}

}  // namespace frazil
