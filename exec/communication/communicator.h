#pragma once
// How devices of one run talk: the one virtual interface of the project, because several worlds
// stand behind it (threads of one process; processes; GPUs). What holds in all of them:
// - Messages are named by tags. From one rank to another and within a lane they are received in
//   the order in which they are sent; lanes and directions are independent of each other.
// - Every wait ends: with what it waits for, with its world's deadline, or with an abort.
// - The first cause aborts the whole world: every waiting and later call of every rank throws it,
//   in the same words. An aborted world is of no more use; the next run of ranks makes a new one.

#include <chrono>
#include <string>

#include "exec/communication/communication_error.h"
#include "exec/communication/message_tag.h"
#include "exec/tensors/tensors.h"
#include "profiles/units.h"

namespace frazil {

// Of a world, not of one rank.
struct CommunicatorOptions {
  Duration deadline = std::chrono::minutes(10);  // of a single wait
  // Also refuse an order that only a world matching by tag can serve: a schedule that would wait
  // for ever under NCCL.
  bool check_order = true;
};

// One rank's end. Calls come from that rank's thread only, abort() from any.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Never waits for the receiver. Requires: nobody writes to the tensors afterwards (they may be
  // handed over as they are), peer != rank().
  virtual void send(int peer, const Tag& tag, Tensors tensors) = 0;
  // Waits for the message. The tensors must not be written to. Throws CommunicationError when the
  // wait cannot end well, PeerLost after abort().
  virtual Tensors receive(int peer, const Tag& tag) = 0;
  // Returns when all ranks have called it. Throws as receive() does.
  virtual void barrier() = 0;
  // Every waiting and later call of every rank throws PeerLost with this reason, unless the world
  // has been aborted before. Messages not yet received are dropped.
  virtual void abort(const std::string& reason) = 0;
  // This rank has done its part of a job (a step): it sends nothing more in it and comes to no more
  // barrier, so who still waits for it in its own part of that job fails at once instead of at the
  // deadline. All ranks or none call it, once a job. Does nothing in an aborted world.
  virtual void finish() = 0;
  // As finish(), of all jobs to come. The destructor does it as well.
  virtual void leave() = 0;
};

}  // namespace frazil
