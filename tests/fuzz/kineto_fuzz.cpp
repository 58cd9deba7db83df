// Any text is refused in a sentence, or is a trace in Chrome's form, as PyTorch's profiler writes
// it, whose events lie in time.

#include "traces/kineto/kineto_trace.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/round_trip.h"
#include "traces/json_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace frazil;
  const auto parse = [](std::string_view text, const std::string& file) {
    JsonStream stream(text, file);
    return read_kineto_trace(stream, "layer:");
  };
  const auto trace = read_or_refuse({reinterpret_cast<const char*>(data), size}, parse);
  if (trace) {
    require(trace->events >= static_cast<std::int64_t>(trace->device.size()),
            "no more events are kept than there are");
  }
  return 0;
}
