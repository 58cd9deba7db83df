#pragma once
// A safetensors file, mapped read-only: nothing of it is read before it is used, so it may be
// larger than memory. Whoever truncates a file that is mapped ends the program that reads it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "exec/disk/tensor_header.h"

namespace frazil {

class TensorFile {
 public:
  // Throws InputError in one sentence, which names the file, for a file that is no whole
  // safetensors file (exec/disk/tensor_header.h).
  explicit TensorFile(const std::filesystem::path& path);

  const std::string& file() const { return file_; }
  const TensorHeader& header() const { return header_; }

  // Both throw InputError for a tensor that the file does not have. A view is the file's memory,
  // which it keeps mapped, and must not be written; a tensor whose elements lie at no multiple of
  // their size is copied.
  at::Tensor view(std::string_view name) const;
  at::Tensor copy(std::string_view name) const;

  // Returns the XXH64 of all bytes of the file.
  std::uint64_t hash() const;

 private:
  const TensorEntry& entry(std::string_view name) const;
  at::Tensor raw_view(const TensorEntry& entry) const;

  struct Mapping;
  std::string file_;
  std::shared_ptr<const Mapping> mapping_;
  std::uint64_t data_begin_ = 0;
  TensorHeader header_;
};

c10::ScalarType scalar_type(TensorType type);

}  // namespace frazil
