#pragma once
// Makes text safe to print. Names of devices, layers and files come from outside, and a terminal
// obeys control characters: an escape sequence in a name could hide or forge lines of an answer.

#include <cstdint>
#include <string>
#include <string_view>

namespace frazil {

enum class ControlForm : std::uint8_t {
  kText,     // "\x1b"; newlines stay
  kOneLine,  // "\x1b", and newlines as "\x0a"
  kJson      // "\u001b", as the text is JSON; newlines stay, which JSON has between its tokens only
};

// Returns `text` with its control characters (C0, DEL and the C1 characters U+0080 to U+009F) and
// the bytes that are not UTF-8 written out in the given form.
std::string escape_controls(std::string_view text, ControlForm form);

}  // namespace frazil
