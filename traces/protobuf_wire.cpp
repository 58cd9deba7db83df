#include "traces/protobuf_wire.h"

namespace frazil {
namespace {

enum WireType : std::uint32_t { kVarint = 0, kDelimited = 2 };

void append_key(std::string& bytes, std::uint32_t field, WireType type) {
  constexpr int kTypeBits = 3;
  append_varint(bytes, std::uint64_t{field} << kTypeBits | type);
}

}  // namespace

void append_varint(std::string& bytes, std::uint64_t value) {
  constexpr int kBits = 7;
  constexpr std::uint64_t kMore = 1U << kBits;
  for (; value >= kMore; value >>= kBits) {
    bytes.push_back(static_cast<char>((value & (kMore - 1)) | kMore));
  }
  bytes.push_back(static_cast<char>(value));
}

void ProtobufMessage::add_integer(std::uint32_t field, std::uint64_t value) {
  append_key(bytes_, field, kVarint);
  append_varint(bytes_, value);
}

void ProtobufMessage::add_text(std::uint32_t field, std::string_view text) {
  append_key(bytes_, field, kDelimited);
  append_varint(bytes_, text.size());
  bytes_ += text;
}

void ProtobufMessage::add_message(std::uint32_t field, const ProtobufMessage& message) {
  add_text(field, message.bytes_);
}

void ProtobufMessage::add_packed(std::uint32_t field, std::span<const std::uint64_t> values) {
  if (values.empty()) return;
  std::string packed;
  for (const std::uint64_t value : values) append_varint(packed, value);
  add_text(field, packed);
}

void append_delimited(std::string& stream, const ProtobufMessage& message) {
  append_varint(stream, message.bytes().size());
  stream += message.bytes();
}

}  // namespace frazil
