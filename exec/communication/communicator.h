#pragma once
// Lets devices of one run exchange messages. This is the one virtual interface of the project,
// because several worlds (sets of ranks that reach each other) stand behind it: threads of one
// process, processes, GPUs. What holds in all worlds:
// - Messages are named by tags. From one rank to another and within a lane they are received in
//   the order in which they are sent; lanes and directions are independent of each other.
// - Every wait ends: with what it waits for, with its world's deadline, or with an abort. A wait
//   that can never end is an error at once where all waits are seen, as in one process; a ring of
//   waits over several processes may last until the deadline.
// - The first cause aborts the whole world: every waiting and later call of every rank throws it,
//   in the same words. An aborted world is of no more use; the next run of ranks makes a new one.

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "exec/communication/communication_error.h"
#include "exec/links/message_tag.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// The longest single wait in a world. Its owner may change it between two steps: it then holds for
// the waits that begin after that.
class WaitLimit {
 public:
  explicit WaitLimit(Duration time) : time_(time.count()) {}
  Duration time() const { return Duration{time_.load(std::memory_order_relaxed)}; }
  void set(Duration time) { time_.store(time.count(), std::memory_order_relaxed); }

 private:
  std::atomic<Duration::rep> time_;
};

// The options of a whole world; all its ranks share them.
struct CommunicatorOptions {
  // Of a single wait, which counts as in exec/devices/tick_count.h.
  Duration deadline = std::chrono::minutes(10);
  // Also refuses an order that only a world matching by tag can serve: a schedule that would wait
  // for ever under NCCL.
  bool check_order = true;
  std::shared_ptr<const WaitLimit> limit = {};  // if given, in place of `deadline`
};

// One rank's end. Calls come from that rank's thread only, abort() and check() from any.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Sends the tensors and never waits for the receiver, with one exception: where they go to
  // another process that has not taken what was sent before, and their bytes are over the credit
  // that is kept for it, send() waits as receive() does. Requires: nobody writes to the tensors
  // afterwards (they may be handed over as they are), peer != rank().
  virtual void send(int peer, const Tag& tag, Tensors tensors) = 0;
  // Waits for the message and returns its tensors, which must not be written to. Throws
  // CommunicationError if the wait cannot end well, PeerLost after abort().
  virtual Tensors receive(int peer, const Tag& tag) = 0;
  // Returns when all ranks have called it. Throws as receive() does.
  virtual void barrier() = 0;
  // Throws as receive() does if the world is aborted; waits for nothing. From any thread. A world
  // that need not be asked, because whoever waits in it is woken, does nothing.
  virtual void check() {}
  // Replaces `flat` on every rank of the group by the sum over the group, the same bits on all, in
  // an order that the world chooses. Returns false, with nothing done, if the world has no better
  // way for that than messages. All ranks of the group call it, with equal shapes, group and tag.
  // Throws as receive() does.
  virtual bool sum_in_group(const at::Tensor& flat, const std::vector<int>& group, const Tag& tag) {
    (void)flat, (void)group, (void)tag;
    return false;
  }
  // Ends the world: every waiting and later call of every rank throws PeerLost with this reason,
  // unless the world has been aborted before. Messages not yet received are dropped.
  virtual void abort(const std::string& reason) = 0;
  // Says that this rank has done its part of a job (a step): it sends nothing more in that job and
  // comes to no more barrier, so a rank that still waits for it in the same job fails at once
  // instead of at the deadline. All ranks or none call it, once a job. Does nothing in an aborted
  // world.
  virtual void finish() = 0;
  // Does as finish() for all jobs to come. The destructor does it as well.
  virtual void leave() = 0;
};

}  // namespace frazil
