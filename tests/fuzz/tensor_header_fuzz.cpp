// Any text is refused in a sentence, or is the header of a safetensors file whose tensors lie one
// behind the other and fill the data.

#include <cstddef>
#include <cstdint>

#include "exec/disk/tensor_header.h"
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  constexpr std::uint64_t kDataBytes = 24;
  const auto parse = [](std::string_view text, const std::string& file) {
    return parse_tensor_header(text, kDataBytes, file);
  };
  const auto header = read_or_refuse({reinterpret_cast<const char*>(data), size}, parse);
  if (!header) return 0;
  std::uint64_t end = 0;
  for (const TensorEntry& entry : header->tensors) {
    require(entry.begin == end, "a tensor begins where the one before ends");
    end = entry.end;
    std::uint64_t bytes = bytes_of_element(entry.type);
    for (const std::int64_t extent : entry.shape) bytes *= static_cast<std::uint64_t>(extent);
    require(bytes == entry.end - entry.begin, "a tensor has the bytes of its type and shape");
  }
  require(end == kDataBytes, "the tensors fill the data");
  return 0;
}
