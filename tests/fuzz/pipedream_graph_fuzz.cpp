// Any text is refused in a sentence, or is a model profile that a file can hold.

#include "profiles/import/pipedream_graph.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/imported_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check_import({reinterpret_cast<const char*>(data), size}, frazil::parse_pipedream_graph);
  return 0;
}
