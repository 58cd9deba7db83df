#pragma once
// The header of a safetensors file: which tensors it holds, and where. Knows no torch.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

enum class TensorType : std::uint8_t {
  kBool,
  kUint8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
};

std::size_t bytes_of_element(TensorType type);
// Both use PyTorch's names: "float32", "int64", "bool".
std::string_view name_of(TensorType type);
std::optional<TensorType> parse_tensor_type(std::string_view name);

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // bytes, counted from the end of the header
  std::uint64_t end = 0;
};

struct TensorHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;  // by place

  const TensorEntry* find(std::string_view name) const;  // null without such a tensor
};

inline constexpr std::size_t kTensorHeaderSizeBytes = 8;  // before the header

// Reads the text of a header before `data_size` bytes of data. Throws InputError naming `file` and
// the tensor for a type that no tensor here has, a size that does not fit shape and type, a tensor
// that overlaps another one or lies outside of the data, and bytes that belong to no tensor.
TensorHeader parse_tensor_header(std::string_view text, std::uint64_t data_size,
                                 const std::string& file);

}  // namespace frazil
