#pragma once
// Holds what the ranks of a process share in one world: a mailbox each, the barrier, and the cause
// once the world is aborted. Sending, and receiving a message that is there, take one mailbox's
// lock. Only a rank about to sleep takes the room's lock, and under it those of all mailboxes, for
// a snapshot of all waits. Of ranks that live in other processes the room knows what it is told:
// their messages, how often they have come to a barrier, what they have finished; they count as
// running.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/communication/room_outside.h"
#include "exec/communication/wait_graph.h"
#include "exec/communication/world_cause.h"

namespace frazil {

struct PostedMessage {
  Tensors tensors;
  std::uint64_t order = 0;  // among the messages of its sender, receiver and lane
};

using MessageKey = std::pair<int, Tag>;  // sender and name

struct Mailbox {
  std::mutex mutex;  // guards all but `posts`
  std::condition_variable arrived;
  // Entered only while not aborted, read under `mutex`: an abort empties the mailbox once.
  std::map<MessageKey, PostedMessage> messages;
  std::atomic<std::uint64_t> posts{0};  // watched by a rank that spins
  // The message that the owner sleeps for. It is set and cleared under the lock under which the
  // owner looks for the message: an owner with `awaited` and no such message sleeps on until the
  // message is sent.
  std::optional<MessageKey> awaited;
};

// All calls but aborted(), ranks(), options() and mailbox() require that the caller holds no
// mailbox's lock.
class MailboxRoom {
 public:
  // Requires: 0 < deadline <= TickCount::kLongest.
  MailboxRoom(int ranks, const CommunicatorOptions& options, RoomOutside outside = {});

  int ranks() const { return static_cast<int>(mailboxes_.size()); }
  const CommunicatorOptions& options() const { return options_; }
  const RoomOutside& outside() const { return outside_; }
  Duration deadline() const { return options_.limit ? options_.limit->time() : options_.deadline; }
  Mailbox& mailbox(int rank) { return mailboxes_[static_cast<std::size_t>(rank)]; }

  bool aborted() const { return aborted_.load(); }
  // Throws CommunicationError if a fault was the cause, else PeerLost. Requires: aborted().
  [[noreturn]] void throw_cause();
  // Abort with this cause, drop all messages and wake everybody; nothing if aborted before.
  void abort(const std::string& reason);
  void fail(const CommunicationFault& fault);
  // Aborts with a cause that comes from outside, or puts it in the place of the one before.
  void adopt(const WorldCause& cause);

  // Puts a message into the receiver's mailbox and wakes who waits for it. Returns false if one of
  // this name is there already. Drops it if aborted.
  bool post(int receiver, const MessageKey& key, PostedMessage message);
  // Sleeps until is_over(), asked with the lock held, or for `limit`; returns is_over().
  bool sleep(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
             const std::function<bool()>& is_over, Duration limit) const;

  // Aborts if the wait of `rank`, just entered into its mailbox or at the barrier, can never end.
  // Throws nothing: ask aborted().
  void check_wait(int rank);
  // Aborts because the wait of `rank` is over the deadline; nothing if it has ended meanwhile.
  void expire(int rank);
  // Returns when all ranks have called it. Throws as throw_cause() does if aborted, or at the
  // deadline.
  void pass_barrier(int rank);
  void finish(int rank);
  void leave(int rank);
  // What a rank of another process has done: come to a barrier for the count-th time, finished so
  // many jobs.
  void note_arrival(int rank, std::uint64_t count);
  void note_finished(int rank, std::int64_t jobs) { set_finished(rank, jobs); }

 private:
  bool set_cause(WorldCause cause);
  void end();
  bool pass_round();
  void drop_messages();
  void set_finished(int rank, std::int64_t jobs);
  bool is_here(std::size_t rank) const {
    return outside_.is_here.empty() || outside_.is_here[rank];
  }
  void nudge() const {
    if (outside_.nudge) outside_.nudge();
  }
  WaitGraph take_snapshot();

  CommunicatorOptions options_;
  RoomOutside outside_;
  std::vector<Mailbox> mailboxes_;
  std::mutex mutex_;  // guards all below; taken before any mailbox's, never after
  std::condition_variable everyone_;
  std::vector<std::uint64_t> arrivals_;  // by rank: at barriers, so far
  std::uint64_t round_ = 0;              // barriers that all have passed
  std::vector<std::int64_t> finished_;
  std::optional<WorldCause> cause_;
  std::atomic<bool> aborted_{false};
};

}  // namespace frazil
