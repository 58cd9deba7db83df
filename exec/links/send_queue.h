#pragma once
// Writes frames to one socket in the order in which they are given: at once what the socket takes,
// the rest when flush() is called. Tensors are written from where they lie and held until then.

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "exec/tensors/tensors.h"

namespace frazil {

class SendQueue {
 public:
  // `socket` stays open as long as the queue; -1: everything is dropped.
  explicit SendQueue(int socket) : socket_(socket), is_closed_(socket < 0) {}

  // Returns whether something is left for flush(). The bytes of `tensors`, which lie without gaps,
  // follow the head. Never waits; any thread.
  bool send(std::string head, Tensors tensors);
  // Writes what the socket takes; returns whether something is left. Any thread.
  bool flush();
  // Drops what is left and all that comes.
  void close();
  // Bytes that are left; those of a frame count until it is written wholly.
  std::int64_t bytes() const { return bytes_.load(); }

 private:
  struct Frame {
    std::string head;
    Tensors tensors;
    std::size_t written = 0;
    std::size_t bytes = 0;
  };
  using Frames = std::deque<Frame>;

  // Moves what is written, or can never be, to `done`, which the caller frees without the lock.
  void write(Frames& done);
  void drop_all(Frames& done);

  int socket_;
  std::mutex mutex_;  // guards all below
  Frames frames_;
  bool is_closed_;
  std::atomic<std::int64_t> bytes_{0};  // is read without the lock
};

}  // namespace frazil
