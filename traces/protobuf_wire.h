#pragma once
// Writes Protocol Buffers' wire format, the part that trace files need, without the library:
// libtorch brings a copy of its own, and two copies in one program clash. A message is its fields
// one after another. A field is a key (8 x field number + wire type) and a value: a varint (type
// 0), or a length and so many bytes (type 2). A varint holds 7 bits per byte, low ones first; every
// byte but the last has its top bit set. Formula source: the "Encoding" page of Protocol Buffers'
// guides.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace frazil {

void append_varint(std::string& bytes, std::uint64_t value);

// One message as it grows. Fields stand in the order in which they are added. A writer who wants
// the bytes that the library writes adds fields by number and leaves out those that hold their
// default.
class ProtobufMessage {
 public:
  // Adds a uint32, uint64, bool or enum, or the two's complement in 64 bits of an int32 or int64.
  void add_integer(std::uint32_t field, std::uint64_t value);
  void add_text(std::uint32_t field, std::string_view text);
  void add_message(std::uint32_t field, const ProtobufMessage& message);
  // Adds a repeated integer, packed; adds nothing if there are no values.
  void add_packed(std::uint32_t field, std::span<const std::uint64_t> values);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Appends a message to a stream: its length as a varint, then its bytes.
void append_delimited(std::string& stream, const ProtobufMessage& message);

}  // namespace frazil
