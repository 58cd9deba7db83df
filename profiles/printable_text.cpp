#include "profiles/printable_text.h"

#include <fmt/format.h>

namespace frazil {
namespace {

// Returns the length of the UTF-8 sequence that begins at `at`, 0 if none does (RFC 3629).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool too_long = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool no_character = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return too_long || no_character ? 0 : length;
}

// True for a control character, given as its UTF-8 sequence.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

// Writes out a control character or a byte that is not UTF-8.
std::string write_out(std::string_view sequence, ControlForm form) {
  const auto last = static_cast<unsigned char>(sequence.back());
  if (form == ControlForm::kJson) return fmt::format("\\u{:04x}", last);
  std::string text;
  for (const char byte : sequence) {
    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace

std::string escape_controls(std::string_view text, ControlForm form) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    const std::string_view sequence = text.substr(at, length == 0 ? 1 : length);
    const bool is_kept_newline = sequence == "\n" && form != ControlForm::kOneLine;
    if (length > 0 && (is_kept_newline || !is_control(sequence))) {
      result += sequence;
    } else {
      result += write_out(sequence, form);
    }
    at += sequence.size();
  }
  return result;
}

}  // namespace frazil
