#include "exec/links/frame.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "exec/links/checksum.h"

namespace frazil {
namespace {

constexpr std::uint32_t kMagic = 0x4c5a5246;  // "FRZL"
constexpr std::uint16_t kVersion = 1;
constexpr std::uint8_t kChecked = 1;  // a flag
constexpr std::size_t kChecksumAt = 12;
constexpr std::size_t kFixedBytes = 80;      // of a head without text and tensors
constexpr std::size_t kTensorBytes = 24;     // of a tensor without its shape
constexpr std::size_t kDimensionBytes = 16;  // size and stride

[[noreturn]] void refuse(const std::string& what, std::uint64_t found,
                         const std::string& expected) {
  throw FrameError("found " + what + " " + std::to_string(found) + ", expected " + expected);
}

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number read() {
    Number number{};
    const std::string_view taken = take(sizeof number);
    std::memcpy(&number, taken.data(), sizeof number);
    return number;
  }
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) refuse("a head that ends before its byte", count, "a whole head");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

std::uint32_t sum_head(std::string_view head) {
  constexpr std::array<char, 4> kNoChecksum{};
  const std::uint32_t before = crc32c(head.data(), kChecksumAt);
  const std::uint32_t blank = crc32c(kNoChecksum.data(), kNoChecksum.size(), before);
  return crc32c(head.data() + kPrefixBytes, head.size() - kPrefixBytes, blank);
}

void append_tensor(std::string& bytes, const TensorHead& tensor) {
  append(bytes, tensor.type);
  append(bytes, tensor.place);
  append(bytes, static_cast<std::uint16_t>(tensor.shape.size()));
  append(bytes, tensor.checksum);
  append(bytes, tensor.bytes);
  append(bytes, tensor.address);
  for (const std::int64_t size : tensor.shape) append(bytes, size);
  for (const std::int64_t stride : tensor.strides) append(bytes, stride);
}

std::uint64_t count_elements(const TensorHead& tensor, const FrameLimits& limits) {
  std::uint64_t elements = 1;
  bool is_empty = false;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0) refuse("a tensor of negative size in dimensions", tensor.shape.size(), "none");
    const auto factor = static_cast<std::uint64_t>(size);
    is_empty = is_empty || factor == 0;
    if (factor > 0 && elements > limits.bytes / factor) {
      refuse("a tensor of more bytes than", limits.bytes, "no more");
    }
    elements *= std::max<std::uint64_t>(factor, 1);
  }
  return is_empty ? 0 : elements;
}

// Elements without gaps and without overlap: from the least stride on, each is the product of the
// sizes before.
void check_strides(const TensorHead& tensor) {
  std::vector<std::size_t> by_stride(tensor.shape.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t{0});
  std::erase_if(by_stride, [&](std::size_t i) { return tensor.shape[i] == 1; });
  std::sort(by_stride.begin(), by_stride.end(),
            [&](std::size_t a, std::size_t b) { return tensor.strides[a] < tensor.strides[b]; });
  std::int64_t next = 1;
  for (const std::size_t i : by_stride) {
    if (tensor.strides[i] != next) refuse("strides with gaps in dimension", i, "none");
    next *= tensor.shape[i];
  }
}

void check_tensor(const TensorHead& tensor, const FrameLimits& limits) {
  if (tensor.place == TensorPlace::kNone) {
    const TensorHead none{.type = tensor.type};
    if (tensor != none || tensor.type != 0) refuse("an undefined tensor of type", tensor.type, "0");
    return;
  }
  const std::size_t width = element_bytes(tensor.type);
  if (width == 0) refuse("the tensor type", tensor.type, "a type that frames carry");
  const std::uint64_t elements = count_elements(tensor, limits);
  if (tensor.bytes != elements * width) {
    refuse("a tensor of bytes", tensor.bytes, std::to_string(elements * width));
  }
  // Strides of nothing are any, and of no use to the product.
  if (elements > 0) check_strides(tensor);
  for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
    if (tensor.strides[i] < 0) refuse("a negative stride in dimension", i, "none");
  }
  const bool is_lent = tensor.place == TensorPlace::kLent;
  if (is_lent != (tensor.address != 0)) refuse("the address", tensor.address, "one of lent bytes");
  if (is_lent && tensor.bytes == 0) refuse("a loan of bytes", 0, "some");
}

TensorHead read_tensor(Reader& reader, const FrameLimits& limits) {
  TensorHead tensor;
  tensor.type = reader.read<std::uint8_t>();
  const auto place = reader.read<std::uint8_t>();
  const auto dimensions = reader.read<std::uint16_t>();
  if (place > static_cast<std::uint8_t>(TensorPlace::kLent)) refuse("the place", place, "0 to 2");
  if (dimensions > limits.dimensions) {
    refuse("dimensions", dimensions, "at most " + std::to_string(limits.dimensions));
  }
  tensor.place = static_cast<TensorPlace>(place);
  tensor.checksum = reader.read<std::uint32_t>();
  tensor.bytes = reader.read<std::uint64_t>();
  tensor.address = reader.read<std::uint64_t>();
  if (dimensions * kDimensionBytes > reader.left()) refuse("dimensions", dimensions, "fewer");
  for (int i = 0; i < dimensions; ++i) tensor.shape.push_back(reader.read<std::int64_t>());
  for (int i = 0; i < dimensions; ++i) tensor.strides.push_back(reader.read<std::int64_t>());
  check_tensor(tensor, limits);
  return tensor;
}

Tag read_tag(Reader& reader) {
  Tag tag;
  const auto kind = reader.read<std::uint32_t>();
  if (kind > static_cast<std::uint32_t>(MessageKind::kStatistics)) {
    refuse("the kind of message", kind, "0 to 9");
  }
  tag.kind = static_cast<MessageKind>(kind);
  tag.pipeline = reader.read<std::int32_t>();
  tag.from = reader.read<std::int32_t>();
  tag.stage = reader.read<std::int32_t>();
  tag.index = reader.read<std::int32_t>();
  tag.step = reader.read<Step>();
  return tag;
}

void read_tensors(Reader& reader, std::size_t count, const FrameLimits& limits, FrameHead& head) {
  if (count > limits.tensors || count * kTensorBytes > reader.left()) {
    refuse("tensors", count, "fewer");
  }
  if (count > 0 && head.kind != FrameKind::kMessage) refuse("tensors", count, "none");
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    head.tensors.push_back(read_tensor(reader, limits));
    bytes += head.tensors.back().bytes;
    if (bytes > limits.bytes) refuse("bytes", bytes, "at most " + std::to_string(limits.bytes));
  }
}

}  // namespace

std::string encode_frame(const FrameHead& head) {
  std::string bytes;
  bytes.reserve(kFixedBytes + head.text.size() + head.tensors.size() * 96);
  append(bytes, kMagic);
  append(bytes, kVersion);
  append(bytes, head.kind);
  append(bytes, head.checked ? kChecked : std::uint8_t{0});
  append(bytes, std::uint64_t{0});  // length and checksum, below
  append(bytes, head.epoch);
  append(bytes, head.from);
  append(bytes, head.to);
  append(bytes, static_cast<std::uint32_t>(head.tag.kind));
  append(bytes, head.tag.pipeline);
  append(bytes, head.tag.from);
  append(bytes, head.tag.stage);
  append(bytes, head.tag.index);
  append(bytes, head.tag.step);
  append(bytes, head.order);
  append(bytes, head.number);
  append(bytes, static_cast<std::uint32_t>(head.text.size()));
  append(bytes, static_cast<std::uint32_t>(head.tensors.size()));
  bytes += head.text;
  for (const TensorHead& tensor : head.tensors) append_tensor(bytes, tensor);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(bytes.data() + 8, &length, sizeof length);
  const std::uint32_t sum = sum_head(bytes);
  std::memcpy(bytes.data() + kChecksumAt, &sum, sizeof sum);
  return bytes;
}

std::size_t read_head_bytes(std::string_view prefix, const FrameLimits& limits) {
  Reader reader(prefix);
  const auto magic = reader.read<std::uint32_t>();
  if (magic != kMagic) refuse("the first bytes", magic, "those of a frame");
  const auto version = reader.read<std::uint16_t>();
  if (version != kVersion) {
    refuse("a frame of version", version, std::to_string(kVersion));
  }
  const auto kind = reader.read<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(FrameKind::kGreeted)) {
    refuse("a frame of kind", kind, "0 to 7");
  }
  const auto flags = reader.read<std::uint8_t>();
  if (flags > kChecked) refuse("the flags", flags, "0 or 1");
  const std::size_t length = reader.read<std::uint32_t>();
  if (length < kFixedBytes || length > limits.head_bytes) {
    refuse("a head of bytes", length,
           std::to_string(kFixedBytes) + " to " + std::to_string(limits.head_bytes));
  }
  return length;
}

FrameHead decode_frame(std::string_view bytes, const FrameLimits& limits) {
  if (bytes.size() < kPrefixBytes) refuse("a head of bytes", bytes.size(), "a whole head");
  const std::size_t length = read_head_bytes(bytes, limits);
  if (bytes.size() != length) refuse("a head of bytes", bytes.size(), std::to_string(length));
  Reader reader(bytes.substr(kChecksumAt));
  const auto sum = reader.read<std::uint32_t>();
  if (sum != sum_head(bytes)) refuse("the checksum", sum, "that of the head");
  FrameHead head;
  head.kind = static_cast<FrameKind>(bytes[6]);
  head.checked = bytes[7] != 0;
  head.epoch = reader.read<std::uint32_t>();
  head.from = reader.read<std::int32_t>();
  head.to = reader.read<std::int32_t>();
  head.tag = read_tag(reader);
  head.order = reader.read<std::uint64_t>();
  head.number = reader.read<std::uint64_t>();
  const std::size_t text_bytes = reader.read<std::uint32_t>();
  const std::size_t tensors = reader.read<std::uint32_t>();
  if (text_bytes > limits.text_bytes) refuse("a text of bytes", text_bytes, "fewer");
  head.text = std::string(reader.take(text_bytes));
  read_tensors(reader, tensors, limits, head);
  if (reader.left() > 0) refuse("bytes behind the last tensor", reader.left(), "none");
  return head;
}

std::size_t element_bytes(std::uint8_t type) {
  // By at::ScalarType: bytes, integers, floats, complex numbers, bool, bfloat16.
  constexpr std::array<std::uint8_t, 16> kBytes = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 0, 0, 0, 2};
  return type < kBytes.size() ? kBytes[type] : 0;
}

}  // namespace frazil
