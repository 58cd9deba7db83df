#include "exec/communication/mailbox_room.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "exec/devices/tick_count.h"
#include "profiles/error.h"

namespace frazil {

MailboxRoom::MailboxRoom(int ranks, const CommunicatorOptions& options, RoomOutside outside)
    : options_(options),
      outside_(std::move(outside)),
      mailboxes_(static_cast<std::size_t>(ranks)),
      arrivals_(static_cast<std::size_t>(ranks), 0),
      finished_(static_cast<std::size_t>(ranks), 0) {
  ENSURE(deadline() > Duration{0} && deadline() <= TickCount::kLongest,
         "a deadline is some time ahead");
}

// Throws a new exception for every thread: sharing one would share the lifetime of its text.
void MailboxRoom::throw_cause() {
  if (outside_.settle) outside_.settle();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cause_->fault) throw CommunicationError(*cause_->fault);
  throw PeerLost(cause_->reason);
}

void MailboxRoom::abort(const std::string& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!set_cause({reason})) return;
  }
  end();
}

void MailboxRoom::fail(const CommunicationFault& fault) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!set_cause({fault.sentence, fault})) return;
  }
  end();
}

void MailboxRoom::adopt(const WorldCause& cause) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!set_cause(cause)) {
      cause_ = cause;
      return;
    }
  }
  drop_messages();
}

bool MailboxRoom::set_cause(WorldCause cause) {
  if (aborted_) return false;
  cause_ = std::move(cause);
  aborted_ = true;
  everyone_.notify_all();
  return true;
}

// Follows set_cause(), without the lock.
void MailboxRoom::end() {
  drop_messages();
  if (!outside_.tell) return;
  std::optional<WorldCause> cause;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cause = cause_;
  }
  outside_.tell(*cause);
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
  nudge();
}

bool MailboxRoom::post(int receiver, const MessageKey& key, PostedMessage message) {
  Mailbox& box = mailbox(receiver);
  bool fresh = true;
  bool sleeps = false;
  {
    const std::lock_guard<std::mutex> lock(box.mutex);
    // `aborted` is read under the lock: after an abort has emptied the mailbox nothing enters it.
    if (!aborted()) fresh = box.messages.try_emplace(key, std::move(message)).second;
    box.posts.fetch_add(1, std::memory_order_release);
    sleeps = box.awaited.has_value();
  }
  if (sleeps) {
    box.arrived.notify_one();
    nudge();
  }
  return fresh;
}

bool MailboxRoom::sleep(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                        const std::function<bool()>& is_over, Duration limit) const {
  if (!outside_.wait) return wake.wait_for(lock, limit, is_over);
  lock.unlock();
  outside_.wait(*lock.mutex(), wake, is_over, limit);
  lock.lock();
  return is_over();
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
    if (arrivals_[static_cast<std::size_t>(rank)] == round_) missing.push_back(rank);
  }
  for (std::size_t rank = 0; rank < mailboxes_.size(); ++rank) {
    const Mailbox& box = mailboxes_[rank];
    if (!is_here(rank)) continue;
    if (arrivals_[rank] > round_) {
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
  end();
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
  end();
}

// Ends a round to which all have come; asks with the lock held.
bool MailboxRoom::pass_round() {
  if (*std::min_element(arrivals_.begin(), arrivals_.end()) == round_) return false;
  ++round_;
  everyone_.notify_all();
  return true;
}

void MailboxRoom::note_arrival(int rank, std::uint64_t count) {
  bool passed = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    arrivals_[static_cast<std::size_t>(rank)] = count;
    passed = !aborted_ && pass_round();
  }
  if (passed) nudge();
}

void MailboxRoom::pass_barrier(int rank) {
  TickCount waited(deadline());
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t round = round_;
  if (!aborted_) {
    ++arrivals_[static_cast<std::size_t>(rank)];
    if (pass_round()) {
      lock.unlock();
      nudge();
      return;
    }
    lock.unlock();
    check_wait(rank);
    lock.lock();
    const auto is_over = [&] { return round_ != round || aborted_; };
    while (!sleep(lock, everyone_, is_over, waited.tick())) {
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
  if (dead) end();
}

}  // namespace frazil
