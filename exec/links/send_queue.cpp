#include "exec/links/send_queue.h"

#include <ATen/ATen.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace frazil {
namespace {

constexpr std::size_t kMostParts = 64;  // of one call

// The parts of a frame from `skipped` bytes on.
class Parts {
 public:
  explicit Parts(std::size_t skipped) : skipped_(skipped) {}

  void add(const void* data, std::size_t bytes) {
    if (skipped_ >= bytes) {
      skipped_ -= bytes;
      return;
    }
    if (count_ == parts_.size()) return;
    auto* const begin = static_cast<const char*>(data) + skipped_;
    parts_[count_++] = {const_cast<char*>(begin), bytes - skipped_};
    skipped_ = 0;
  }
  bool is_full() const { return count_ == parts_.size(); }
  msghdr message() {
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = count_;
    return message;
  }

 private:
  std::array<iovec, kMostParts> parts_{};
  std::size_t count_ = 0;
  std::size_t skipped_;
};

}  // namespace

bool SendQueue::send(std::string head, Tensors tensors) {
  Frame frame{std::move(head), std::move(tensors)};
  frame.bytes = frame.head.size();
  for (const at::Tensor& tensor : frame.tensors) frame.bytes += tensor.nbytes();
  Frames done;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_closed_) return false;
  bytes_ += static_cast<std::int64_t>(frame.bytes);
  frames_.push_back(std::move(frame));
  // Behind others the frame has to wait for flush() anyway.
  if (frames_.size() == 1) write(done);
  return !frames_.empty();
}

bool SendQueue::flush() {
  Frames done;
  const std::lock_guard<std::mutex> lock(mutex_);
  write(done);
  return !frames_.empty();
}

void SendQueue::close() {
  Frames done;
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_all(done);
}

void SendQueue::drop_all(Frames& done) {
  is_closed_ = true;
  bytes_ = 0;
  for (Frame& frame : frames_) done.push_back(std::move(frame));
  frames_.clear();
}

void SendQueue::write(Frames& done) {
  while (!frames_.empty()) {
    Frame& frame = frames_.front();
    Parts parts(frame.written);
    parts.add(frame.head.data(), frame.head.size());
    for (const at::Tensor& tensor : frame.tensors) {
      if (parts.is_full()) break;
      parts.add(tensor.const_data_ptr(), tensor.nbytes());
    }
    const msghdr message = parts.message();
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) return;
    // Who reads from the socket is told that it is closed.
    if (sent < 0) return drop_all(done);
    frame.written += static_cast<std::size_t>(sent);
    if (frame.written < frame.bytes) continue;
    bytes_ -= static_cast<std::int64_t>(frame.bytes);
    done.push_back(std::move(frame));
    frames_.pop_front();
  }
}

}  // namespace frazil
