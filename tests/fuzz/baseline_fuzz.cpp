// Any text is refused in a sentence, or is a baseline that a file holds.

#include "analysis/guard/baseline_json.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  const auto parse = [](std::string_view text, const std::string& file) {
    return parse_baseline(text, file);
  };
  check_round_trip({reinterpret_cast<const char*>(data), size}, parse,
                   [](const auto& read) { return to_json(read); });
  return 0;
}
