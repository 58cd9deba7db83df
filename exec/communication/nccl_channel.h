#pragma once
// One end of an NCCL communicator with what it is given to do, one group of operations after
// another. It belongs to the issuing thread of its GPU, which asks it to advance() now and then;
// nothing here waits.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "exec/communication/nccl_table.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// A mark that is forgotten with its owner.
using OwnedMark = std::unique_ptr<void, void (*)(NcclMark)>;

// A group of operations, from the rank's thread to the issuing thread and, when it is done, back.
struct NcclWork {
  enum class State : std::uint8_t { kQueued, kIssued, kDone, kFailed };

  // Its operations on the tensors, called between the start and the end of a group.
  std::function<void(NcclEnd, const Tensors&)> issue;
  Tensors tensors;                    // held until it is done
  OwnedMark after{nullptr, nullptr};  // the operations go on after it
  std::string what;                   // "send the activation of micro-batch 3 ... to rank 1"
  std::atomic<State> state{State::kQueued};
};

class NcclChannel {
 public:
  // Begins the communicator that all its ranks meet in. `peers` tells in an error who they are,
  // "rank 1".
  NcclChannel(const NcclTable& table, const NcclId& id, const NcclPlace& place, std::string peers);
  // Requires: abort() or close() has ended the communicator.
  ~NcclChannel();
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  void add(std::shared_ptr<NcclWork> work) { queued_.push_back(std::move(work)); }
  // Does what can be done now. Returns true if a work has ended. Throws std::runtime_error saying
  // what cannot be done and why, "send ... to rank 1 over NCCL: ...".
  bool advance();
  // True if something is under way or queued.
  bool is_busy() const;
  // Ends the communicator at once, whatever is under way; says nothing of its own failure.
  void abort();
  // Ends the communicator in peace, step by step. Returns true when it has ended. Requires:
  // !is_busy().
  bool close();

 private:
  void issue(const std::shared_ptr<NcclWork>& work);
  bool settle();
  NcclState ask(const std::string& what);

  enum class Phase : std::uint8_t { kBeginning, kOpen, kClosing, kEnded };
  struct Running {
    std::shared_ptr<NcclWork> work;
    OwnedMark mark;  // null until NCCL has taken the group
  };

  const NcclTable& table_;
  std::string peers_;
  Phase phase_ = Phase::kBeginning;
  NcclEnd end_ = nullptr;
  std::deque<std::shared_ptr<NcclWork>> queued_;
  std::deque<Running> running_;
};

}  // namespace frazil
