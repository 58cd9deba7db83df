// Any text is refused in a sentence, or is a run configuration that a file holds. Texts that name a
// trace to replay are left out, for that is another file.

#include "exec/config/run_config.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("trace") != std::string_view::npos || text.find('\\') != std::string_view::npos) {
    return 0;
  }
  const auto parse = [](std::string_view some, const std::string& file) {
    return parse_run_config(some, file);
  };
  check_round_trip(text, parse, [](const RunConfig& config) { return to_json(config); });
  return 0;
}
