// Any text is refused in a sentence, or is a time line that is written as the same text again and
// whose sums fit.

#include "traces/timeline_csv.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tests/fuzz/property.h"

namespace frazil {
namespace {

std::optional<Timeline> read_or_refuse(std::string_view text) {
  try {
    return parse_timeline_csv(text, kFuzzedFile);
  } catch (const InputError& error) {
    require_sentence(error, text);
    return std::nullopt;
  }
}

void check(std::string_view text) {
  const std::optional<Timeline> timeline = read_or_refuse(text);
  if (!timeline) return;
  require(to_csv(*timeline, parse_clock_uncertainty(text, kFuzzedFile)) == text,
          "a time line that was read is written as the same text");
  Timeline sorted = *timeline;
  sort_spans(sorted);
  require(sorted == *timeline, "a time line that was read is sorted");
  require(Duration{0} <= max_span(*timeline) && max_span(*timeline) <= makespan(*timeline),
          "no device takes longer than all");
  require(Duration{0} <= busy(*timeline), "compute time is not negative");
  for (const Step step : steps_of(*timeline)) {
    require(makespan(step_of(*timeline, step)) <= makespan(*timeline),
            "no step takes longer than all");
  }
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
