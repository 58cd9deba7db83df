#include "profiles/error.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

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

std::string sentence(const std::string& file, int line, const std::string& found,
                     const std::string& expected) {
  const std::string place = line == 0 ? file : fmt::format("{}:{}", file, line);
  return to_one_line(fmt::format("{}: found {}, expected {}", place, found, expected));
}

}  // namespace

std::string to_one_line(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = sequence_length(text, at);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

InputError::InputError(std::string file, int line, std::string found, std::string expected)
    : std::runtime_error(sentence(file, line, found, expected)),
      file_(std::move(file)),
      line_(line),
      found_(std::move(found)),
      expected_(std::move(expected)) {}

// Compilers name a file by the path that they were given, so only its last folder and name are
// shown.
void fail_ensure(const char* file, int line, const std::string& text) {
  std::string_view name = file;
  if (const std::size_t end = name.rfind('/'); end != std::string_view::npos && end > 0) {
    const std::size_t begin = name.rfind('/', end - 1);
    if (begin != std::string_view::npos) name.remove_prefix(begin + 1);
  }
  throw std::logic_error(fmt::format("{}:{}: {}", name, line, text));
}

}  // namespace frazil
