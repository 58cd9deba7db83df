#pragma once
// Reads Protocol Buffers' wire format without a schema: a message as its list of fields. It serves
// tests and is independent of the writer. A message that is cut off, and a wire type other than 0
// and 2, throw std::runtime_error.

#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace frazil {

struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t wire_type = 0;  // 0: value, 2: bytes
  std::uint64_t value = 0;
  std::string_view bytes;  // points into the message
};

// Takes a varint off the front.
inline std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) throw std::runtime_error("a varint that is cut off");
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value += std::uint64_t{byte % 128U} << shift;
    if (byte < 128) return value;
  }
  throw std::runtime_error("a varint of more than ten bytes");
}

// Takes a length and as many bytes off the front.
inline std::string_view take_delimited(std::string_view& bytes) {
  const std::uint64_t size = take_varint(bytes);
  if (size > bytes.size()) throw std::runtime_error("a field that is cut off");
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

inline std::vector<ProtobufField> read_fields(std::string_view message) {
  std::vector<ProtobufField> fields;
  while (!message.empty()) {
    const std::uint64_t key = take_varint(message);
    ProtobufField field{.number = key / 8, .wire_type = key % 8, .value = 0, .bytes = {}};
    if (field.wire_type == 0) {
      field.value = take_varint(message);
    } else if (field.wire_type == 2) {
      field.bytes = take_delimited(message);
    } else {
      throw std::runtime_error("a wire type that is neither varint nor delimited");
    }
    fields.push_back(field);
  }
  return fields;
}

// Splits a stream into its messages, each of which stands behind its length.
inline std::vector<std::string_view> read_stream(std::string_view stream) {
  std::vector<std::string_view> messages;
  while (!stream.empty()) messages.push_back(take_delimited(stream));
  return messages;
}

}  // namespace frazil
