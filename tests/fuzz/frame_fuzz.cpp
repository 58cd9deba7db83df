// Any bytes are refused in a sentence, or are the head of a frame that is written as the same bytes
// again. Bytes are tried as they are and with a length and a checksum that fit, which no mutation
// finds by itself.

#include "exec/links/frame.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "exec/links/checksum.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

std::optional<FrameHead> read_or_refuse(std::string_view bytes) {
  try {
    return decode_frame(bytes);
  } catch (const FrameError& error) {
    const std::string_view sentence = error.what();
    require(sentence.starts_with("found ") && sentence.find(", expected ") != sentence.npos,
            "a refusal says what it found and what it expected");
    return std::nullopt;
  }
}

void check(std::string_view bytes) {
  const std::optional<FrameHead> head = read_or_refuse(bytes);
  if (!head) return;
  require(encode_frame(*head) == bytes, "a head that was read is written as the same bytes");
  std::uint64_t sum = 0;
  for (const TensorHead& tensor : head->tensors) {
    require(tensor.shape.size() == tensor.strides.size(), "each dimension has a stride");
    require(tensor.place == TensorPlace::kNone || element_bytes(tensor.type) > 0,
            "a tensor has elements of some size");
    sum += tensor.bytes;
  }
  require(sum <= FrameLimits{}.bytes, "the tensors of a frame are within its limits");
}

std::string repair(std::string bytes) {
  if (bytes.size() < kPrefixBytes) return bytes;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(bytes.data() + 8, &length, sizeof length);
  std::memset(bytes.data() + 12, 0, 4);
  const std::uint32_t sum = crc32c(bytes.data(), bytes.size());
  std::memcpy(bytes.data() + 12, &sum, sizeof sum);
  return bytes;
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  frazil::check(bytes);
  frazil::check(frazil::repair(bytes));
  return 0;
}
