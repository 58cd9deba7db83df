#pragma once
// A frame is what processes send each other over a link: a head, and behind it the bytes of those
// tensors that are not lent. The head is
//   magic, version, kind, flags, bytes of the head, CRC32C of the head (16 bytes: the prefix),
//   epoch, ranks from and to, tag, order, number, text,
//   per tensor: type, place, checksum, bytes, address, shape, strides,
// in the byte order of the processor, which is little-endian on all that Frazil runs on. Reading is
// a pure function that trusts nothing: whatever the bytes, it returns a head that is consistent in
// itself and within the limits, or throws FrameError. It allocates no more than a multiple of the
// head's own bytes. No torch here.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "exec/links/message_tag.h"

namespace frazil {

enum class FrameKind : std::uint8_t {
  kMessage,   // tag, order, tensors
  kBarrier,   // number: barriers to which `from` has come, this one included
  kFinished,  // number: jobs whose part `from` has done
  kCause,     // text: why the world ends; number: 1 if that is settled, 0 if it is a proposal
  kAnswer,    // a proposal has been read
  kTaken,     // number: the loan that has been read and may be taken back
  kGreeting,  // number: process id; order: address of the bytes that `text` repeats
  kGreeted,   // number: 1 if the memory of the greeting could be read
};

enum class TensorPlace : std::uint8_t {
  kNone,    // an undefined tensor
  kBehind,  // its bytes follow the head
  kLent,    // its bytes lie in the sender's memory, at `address`
};

struct TensorHead {
  std::uint8_t type = 0;  // at::ScalarType
  TensorPlace place = TensorPlace::kNone;
  std::uint32_t checksum = 0;  // of the bytes, in checked frames
  std::uint64_t bytes = 0;     // those of all elements, which lie without gaps
  std::uint64_t address = 0;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};  // in elements

  friend bool operator==(const TensorHead&, const TensorHead&) = default;
};

struct FrameHead {
  FrameKind kind = FrameKind::kMessage;
  bool checked = false;
  std::uint32_t epoch = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
  Tag tag = {};
  std::uint64_t order = 0;
  std::uint64_t number = 0;
  std::string text = {};
  std::vector<TensorHead> tensors = {};

  friend bool operator==(const FrameHead&, const FrameHead&) = default;
};

struct FrameLimits {
  std::size_t head_bytes = std::size_t{1} << 22;
  std::size_t text_bytes = std::size_t{1} << 16;
  std::size_t tensors = std::size_t{1} << 15;
  std::size_t dimensions = 16;
  std::uint64_t bytes = std::uint64_t{1} << 36;  // of all tensors
};

// what() says what was found and what was expected: "the length 7 of a head, expected 96 to 100".
class FrameError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t kPrefixBytes = 16;

// Requires: a head that decode_frame() would return.
std::string encode_frame(const FrameHead& head);
// Returns the bytes of the head that begins so. Requires: prefix.size() >= kPrefixBytes.
std::size_t read_head_bytes(std::string_view prefix, const FrameLimits& limits = {});
FrameHead decode_frame(std::string_view head, const FrameLimits& limits = {});

// Returns the bytes of one element; 0 for a type that no frame carries.
std::size_t element_bytes(std::uint8_t type);

}  // namespace frazil
