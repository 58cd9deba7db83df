#include "exec/disk/tensor_file.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "exec/disk/file_system.h"
#include "exec/disk/hashes.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExpected = "a safetensors file";
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // as other readers of the format take

// Returns what a link names, since models are often kept behind one.
fs::path behind_links(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error == std::errc::no_such_file_or_directory) {
    throw InputError(path.string(), 0, "no such file", kExpected);
  }
  if (error) fail_system(path.string(), error.value(), "open", kExpected);
  if (fs::is_directory(real, error)) throw InputError(path.string(), 0, "a folder", kExpected);
  return real;
}

}  // namespace

struct TensorFile::Mapping {
  Mapping(const fs::path& path, const std::string& name) {
    const FileSystem files = real_file_system();
    File file(files, behind_links(path), O_RDONLY);
    size = static_cast<std::size_t>(file.size());
    if (size == 0) throw InputError(name, 0, "an empty file", kExpected);
    void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
    if (mapped == MAP_FAILED) fail_system(name, errno, "mmap", kExpected);
    bytes = static_cast<const char*>(mapped);
  }
  ~Mapping() { ::munmap(const_cast<char*>(bytes), size); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const char* bytes = nullptr;
  std::size_t size = 0;
};

TensorFile::TensorFile(const fs::path& path)
    : file_(path.string()), mapping_(std::make_shared<const Mapping>(path, file_)) {
  static_assert(std::endian::native == std::endian::little, "files are little-endian");
  std::uint64_t size = 0;
  const std::uint64_t rest = mapping_->size - std::min(mapping_->size, sizeof size);
  if (rest > 0) std::memcpy(&size, mapping_->bytes, sizeof size);
  if (size == 0 || size > rest || size > kMostHeaderBytes) {
    throw InputError(file_, 0,
                     "a header of " + std::to_string(size) + " bytes in a file of " +
                         std::to_string(mapping_->size),
                     kExpected);
  }
  data_begin_ = sizeof size + size;
  header_ = parse_tensor_header({mapping_->bytes + sizeof size, size}, rest - size, file_);
}

const TensorEntry& TensorFile::entry(std::string_view name) const {
  if (const TensorEntry* const found = header_.find(name)) return *found;
  throw InputError(file_, 0, "no tensor " + json_string(name), "a file that holds it");
}

at::Tensor TensorFile::raw_view(const TensorEntry& entry) const {
  // Nobody writes through what is handed out; PROT_READ would tell.
  char* const data = const_cast<char*>(mapping_->bytes) + data_begin_ + entry.begin;
  return at::from_blob(
      data, {static_cast<std::int64_t>(entry.end - entry.begin)}, [mapping = mapping_](void*) {},
      at::kByte);
}

at::Tensor TensorFile::view(std::string_view name) const {
  const TensorEntry& found = entry(name);
  const std::size_t element = bytes_of_element(found.type);
  if ((data_begin_ + found.begin) % element != 0) return copy(name);
  return raw_view(found).view(scalar_type(found.type)).view(found.shape);
}

at::Tensor TensorFile::copy(std::string_view name) const {
  const TensorEntry& found = entry(name);
  at::Tensor tensor = at::empty(found.shape, scalar_type(found.type));
  if (found.end > found.begin) {
    std::memcpy(tensor.data_ptr(), mapping_->bytes + data_begin_ + found.begin,
                found.end - found.begin);
  }
  return tensor;
}

std::uint64_t TensorFile::hash() const { return hash_bytes(mapping_->bytes, mapping_->size); }

c10::ScalarType scalar_type(TensorType type) {
  switch (type) {
    case TensorType::kBool:
      return c10::kBool;
    case TensorType::kUint8:
      return c10::kByte;
    case TensorType::kInt8:
      return c10::kChar;
    case TensorType::kInt16:
      return c10::kShort;
    case TensorType::kInt32:
      return c10::kInt;
    case TensorType::kInt64:
      return c10::kLong;
    case TensorType::kFloat16:
      return c10::kHalf;
    case TensorType::kBfloat16:
      return c10::kBFloat16;
    case TensorType::kFloat32:
      return c10::kFloat;
    case TensorType::kFloat64:
      return c10::kDouble;
  }
  ENSURE(false, "the type of a tensor is one of the enumerators");
}

}  // namespace frazil
