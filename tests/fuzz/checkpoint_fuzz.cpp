// Any text is refused in a sentence, or is the header of a checkpoint, whose own text is refused in
// a sentence or holds what a checkpoint holds besides tensors.

#include <cstddef>
#include <cstdint>

#include "exec/checkpoint/checkpoint_header.h"
#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  const auto find = [](std::string_view text, const std::string& file) {
    return find_metadata(text, file);
  };
  const auto parse = [](std::string_view text, const std::string& file) {
    return parse_metadata(text, file);
  };
  const auto text = read_or_refuse({reinterpret_cast<const char*>(data), size}, find);
  if (!text) return 0;
  const auto metadata = read_or_refuse(*text, parse);
  if (!metadata) return 0;
  const std::string written = to_json(*metadata);
  const auto again = read_or_refuse(written, parse);
  require(again && to_json(*again) == written, "what was read is read again as the same");
  return 0;
}
