// Any text is refused in a sentence, or is a freeze trace that a file holds. Lines of kinds "x-..."
// that nobody knows are not kept.

#include "traces/freeze_trace.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  const auto parse = [](std::string_view text, const std::string& file) {
    FreezeTrace trace = parse_freeze_trace(text, file);
    trace.skipped_extensions = 0;
    return trace;
  };
  check_round_trip({reinterpret_cast<const char*>(data), size}, parse,
                   [](const FreezeTrace& trace) { return to_jsonl(trace); });
  return 0;
}
