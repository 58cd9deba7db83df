#pragma once
// Takes frames from one socket. Bytes of large tensors are read straight to where they stay. One
// thread at a time.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "exec/links/frame.h"
#include "exec/links/tensor_pool.h"

namespace frazil {

class ReceiveStream {
 public:
  enum class State { kEmpty, kMore, kClosed };
  // The tensors have their bytes, except those that are lent, which have their memory.
  using Take = std::function<void(FrameHead&&, Tensors&&)>;

  // `socket` stays open as long as the stream; -1: closed.
  ReceiveStream(int socket, const TensorPool& pool);

  // Reads for a moment what has come, without waiting, and gives `take` each frame that is whole; a
  // frame with a loan is the last one, for taking a loan takes long. Returns kMore if there may be
  // more. Throws FrameError for what is no frame, and for one for which there is no memory; the
  // stream is of no more use then.
  State read(const Take& take);
  // True if read() has left a frame that the socket does not tell of.
  bool has_unread() const { return has_unread_; }

 private:
  State receive();
  // Returns false if it stopped behind a loan.
  bool parse(const Take& take);
  bool parse_head();
  bool fill_tensors();
  std::string_view unread() const;

  int socket_;
  const TensorPool* pool_;
  std::vector<char> buffer_;
  bool has_unread_ = false;
  std::size_t begin_ = 0;  // of the bytes of `buffer_` that are not yet taken
  std::size_t end_ = 0;
  std::optional<FrameHead> head_;  // of the frame whose bytes are coming
  Tensors tensors_;
  std::size_t tensor_ = 0;  // that is being filled
  std::size_t filled_ = 0;  // bytes of it
};

}  // namespace frazil
