#pragma once
// Frames that links have received, on their way to a world. Each epoch is one world: a frame of the
// newest epoch goes to its world, one of an epoch to come is kept until that begins, and one of an
// epoch that is over is dropped and counted. The owner guards all calls but stale() with one mutex.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "exec/links/frame.h"
#include "exec/tensors/tensors.h"

namespace frazil {

// The world of an epoch, to which frames go. Called by whatever thread reads, one at a time.
struct LinkWorld {
  // Throws FrameError for a frame that makes no sense, which ends the link.
  std::function<void(int process, FrameHead&&, Tensors&&)> take;
  // `why` continues "its process": "has ended".
  std::function<void(int process, const std::string& why)> lose;
};

class EpochFrames {
 public:
  // Begins an epoch and gives its world what has come for it already. Requires: `epoch` is higher
  // than any before.
  void open(std::uint32_t epoch, LinkWorld world);
  // Throws what the world throws.
  void hand_on(int process, FrameHead&& head, Tensors&& tensors);
  // Drops what is kept of a process whose number another one has now.
  void forget(int process);
  // Tells the world, if there is one, of a lost process.
  void lose(int process, const std::string& why) const;
  std::uint64_t stale() const { return stale_; }

 private:
  struct Early {
    int process = 0;
    FrameHead head;
    Tensors tensors;
  };

  std::uint32_t epoch_ = 0;
  LinkWorld world_;
  std::deque<Early> early_;
  std::atomic<std::uint64_t> stale_{0};
};

}  // namespace frazil
