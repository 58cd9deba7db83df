// Any bytes are refused in a sentence, or begin with control messages that are written as the same
// bytes again. Bytes are tried as they are and with heads that fit, which mutations find too
// seldom.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "exec/control/control_message.h"
#include "tests/fuzz/property.h"

namespace frazil {
namespace {

void check(std::string_view bytes) {
  try {
    std::string_view left = bytes;
    while (const std::optional<ControlMessage> message = take_message(left)) {
      const std::string_view read = bytes.substr(0, bytes.size() - left.size());
      require(to_bytes(*message) == read, "what was read is written as the same bytes");
      bytes = left;
    }
    require(left.size() == bytes.size(), "what is no whole message stays");
  } catch (const WireError& error) {
    require(std::string_view(error.what()).starts_with("found "), "a refusal says what it found");
  }
}

std::string with_head(std::string_view body) {
  std::string bytes = to_bytes(CommitMessage{}).substr(0, kControlHead);
  const auto size = static_cast<std::uint32_t>(body.size());
  std::memcpy(bytes.data() + 8, &size, sizeof size);
  return bytes.append(body);
}

}  // namespace
}  // namespace frazil

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  frazil::check(bytes);
  frazil::check(frazil::with_head(bytes.substr(std::min(size, frazil::kControlHead))));
  return 0;
}
