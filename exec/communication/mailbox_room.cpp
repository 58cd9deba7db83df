#include "exec/communication/mailbox_room.h"

#include <algorithm>
#include <chrono>

#include "exec/devices/tick_count.h"
#include "profiles/error.h"

namespace frazil {

MailboxRoom::MailboxRoom(int ranks, const CommunicatorOptions& options)
    : options_(options),
      mailboxes_(static_cast<std::size_t>(ranks)),
      at_barrier_(static_cast<std::size_t>(ranks), false),
      finished_(static_cast<std::size_t>(ranks), 0) {
  ENSURE(deadline() > Duration{0} && deadline() <= TickCount::kLongest,
         "a deadline is some time ahead");
}

// Throws a new exception for every thread: sharing one would share the lifetime of its text.
void MailboxRoom::throw_cause() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cause_->fault) throw CommunicationError(*cause_->fault);
  throw PeerLost(cause_->reason);
}

void MailboxRoom::abort(const std::string& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!set_cause({reason, std::nullopt})) return;
  }
  drop_messages();
}

void MailboxRoom::fail(const CommunicationFault& fault) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!set_cause({fault.sentence, fault})) return;
  }
  drop_messages();
}

bool MailboxRoom::set_cause(Cause cause) {
  if (aborted_) return false;
  cause_ = std::move(cause);
  aborted_ = true;
  everyone_.notify_all();
  return true;
}

void MailboxRoom::drop_messages() {
  for (Mailbox& box : mailboxes_) {
    std::map<MessageKey, PostedMessage> dropped;
    {
      // The lock also keeps a rank from missing the news between its check and its sleep.
      const std::lock_guard<std::mutex> lock(box.mutex);
      dropped.swap(box.messages);
    }
    box.arrived.notify_all();
  }
}

// Locks all mailboxes at once, so that nobody can send or wake meanwhile: the waits are
// simultaneous, and a ring among them is there to stay.
WaitGraph MailboxRoom::take_snapshot() {
  WaitGraph graph{.waits = std::vector<std::optional<Wait>>(mailboxes_.size()),
                  .finished = finished_};
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(mailboxes_.size());
  for (Mailbox& box : mailboxes_) locks.emplace_back(box.mutex);
  std::vector<int> missing;
  for (int rank = 0; rank < ranks(); ++rank) {
    if (!at_barrier_[static_cast<std::size_t>(rank)]) missing.push_back(rank);
  }
  for (std::size_t rank = 0; rank < mailboxes_.size(); ++rank) {
    const Mailbox& box = mailboxes_[rank];
    if (at_barrier_[rank]) {
      graph.waits[rank] = Wait{.message = {}, .peers = missing};
    } else if (box.awaited && !box.messages.contains(*box.awaited)) {
      graph.waits[rank] = Wait{.message = box.awaited->second, .peers = {box.awaited->first}};
    }
  }
  return graph;
}

void MailboxRoom::check_wait(int rank) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) return;
    const std::optional<CommunicationFault> fault = find_dead_wait(take_snapshot(), rank);
    if (!fault) return;
    set_cause({fault->sentence, fault});
  }
  drop_messages();
}

void MailboxRoom::expire(int rank) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) return;
    const WaitGraph graph = take_snapshot();
    if (!graph.waits[static_cast<std::size_t>(rank)]) return;
    const CommunicationFault fault = make_expiry(graph, rank, deadline());
    set_cause({fault.sentence, fault});
  }
  drop_messages();
}

void MailboxRoom::pass_barrier(int rank) {
  TickCount waited(deadline());
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t round = round_;
  if (!aborted_) {
    at_barrier_[static_cast<std::size_t>(rank)] = true;
    if (std::find(at_barrier_.begin(), at_barrier_.end(), false) == at_barrier_.end()) {
      at_barrier_.assign(at_barrier_.size(), false);
      ++round_;
      everyone_.notify_all();
      return;
    }
    lock.unlock();
    check_wait(rank);
    lock.lock();
    const auto is_over = [&] { return round_ != round || aborted_; };
    while (!everyone_.wait_for(lock, waited.tick(), is_over)) {
      if (!waited.is_over()) continue;
      lock.unlock();
      expire(rank);
      lock.lock();
      break;
    }
    if (round_ != round) return;
  }
  lock.unlock();
  throw_cause();
}

// Only this rank writes its own count, so it may read it without the lock.
void MailboxRoom::finish(int rank) {
  const std::int64_t jobs = finished_[static_cast<std::size_t>(rank)];
  if (jobs != kEveryJob) set_finished(rank, jobs + 1);
}

void MailboxRoom::leave(int rank) { set_finished(rank, kEveryJob); }

void MailboxRoom::set_finished(int rank, std::int64_t jobs) {
  bool dead = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_[static_cast<std::size_t>(rank)] = jobs;
    if (aborted_) return;
    const WaitGraph graph = take_snapshot();
    for (int waiting = 0; waiting < ranks() && !dead; ++waiting) {
      const std::optional<CommunicationFault> fault = find_dead_wait(graph, waiting);
      if (fault) dead = set_cause({fault->sentence, fault});
    }
  }
  if (dead) drop_messages();
}

}  // namespace frazil
