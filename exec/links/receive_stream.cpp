#include "exec/links/receive_stream.h"

#include <ATen/ATen.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace frazil {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr int kMostCalls = 16;  // then others have their turn

char* bytes_of(const at::Tensor& tensor) { return static_cast<char*>(tensor.mutable_data_ptr()); }

bool has_loan(const FrameHead& head) {
  return std::any_of(head.tensors.begin(), head.tensors.end(),
                     [](const TensorHead& tensor) { return tensor.place == TensorPlace::kLent; });
}

}  // namespace

ReceiveStream::ReceiveStream(int socket, const TensorPool& pool)
    : socket_(socket), pool_(&pool), buffer_(socket < 0 ? 0 : kBufferBytes) {}

std::string_view ReceiveStream::unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

ReceiveStream::State ReceiveStream::read(const Take& take) {
  if (socket_ < 0) return State::kClosed;
  if (has_unread_ && !parse(take)) return State::kMore;
  for (int call = 0; call < kMostCalls; ++call) {
    const State state = receive();
    if (state == State::kClosed) return state;
    if (!parse(take)) return State::kMore;
    if (state == State::kEmpty) return state;
  }
  return State::kMore;
}

// Returns kMore if the socket filled all the room that there was.
ReceiveStream::State ReceiveStream::receive() {
  if (begin_ == end_) begin_ = end_ = 0;
  iovec parts[2];
  std::size_t count = 0;
  std::size_t room = 0;
  // With bytes still in the buffer the tensor has been filled from there as far as they go.
  const bool fills = head_ && begin_ == end_ && tensor_ < tensors_.size();
  if (fills) {
    const at::Tensor& tensor = tensors_[tensor_];
    parts[count++] = {bytes_of(tensor) + filled_, tensor.nbytes() - filled_};
    room += parts[0].iov_len;
  }
  parts[count++] = {buffer_.data() + end_, buffer_.size() - end_};
  room += parts[count - 1].iov_len;
  ssize_t got = 0;
  do {
    got = readv(socket_, parts, static_cast<int>(count));
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return State::kEmpty;
  if (got <= 0) return State::kClosed;
  auto bytes = static_cast<std::size_t>(got);
  const bool is_all = bytes < room;
  if (fills) {
    const std::size_t part = std::min(bytes, parts[0].iov_len);
    filled_ += part;
    bytes -= part;
  }
  end_ += bytes;
  return is_all ? State::kEmpty : State::kMore;
}

bool ReceiveStream::parse(const Take& take) {
  has_unread_ = false;
  while ((head_ || parse_head()) && fill_tensors()) {
    FrameHead head = std::move(*head_);
    head_.reset();
    has_unread_ = has_loan(head) && begin_ < end_;
    take(std::move(head), std::exchange(tensors_, {}));
    if (has_unread_) return false;
  }
  return true;
}

// Returns false if the head is not there wholly; then there is room for it.
bool ReceiveStream::parse_head() {
  if (unread().size() < kPrefixBytes) {
    if (buffer_.size() - begin_ < kPrefixBytes) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    return false;
  }
  const std::size_t bytes = read_head_bytes(unread());
  if (unread().size() < bytes) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    return false;
  }
  head_ = decode_frame(unread().substr(0, bytes));
  begin_ += bytes;
  tensor_ = filled_ = 0;
  try {
    for (const TensorHead& tensor : head_->tensors) tensors_.push_back(pool_->make(tensor));
  } catch (const std::exception&) {
    throw FrameError("found " + to_text(head_->tag) + ", expected one for which there is memory");
  }
  return true;
}

// Returns whether all tensors have their bytes.
bool ReceiveStream::fill_tensors() {
  for (; tensor_ < tensors_.size(); ++tensor_, filled_ = 0) {
    const TensorHead& head = head_->tensors[tensor_];
    if (head.place != TensorPlace::kBehind) continue;
    const std::size_t part = std::min(unread().size(), head.bytes - filled_);
    if (part > 0) std::memcpy(bytes_of(tensors_[tensor_]) + filled_, unread().data(), part);
    begin_ += part;
    filled_ += part;
    if (filled_ < head.bytes) return false;
  }
  return true;
}

}  // namespace frazil
