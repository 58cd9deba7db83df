// Any text is refused in a sentence, or is a model profile that a file can hold.

#include "profiles/import/layer_csv.h"

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/imported_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  frazil::check_import({reinterpret_cast<const char*>(data), size}, frazil::parse_layer_csv);
  return 0;
}
