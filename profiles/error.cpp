#include "profiles/error.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace frazil {
namespace {

// Keeps every message on one line, whatever a file name or an input may hold.
std::string on_one_line(std::string_view text) {
  std::string result;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += character;
    }
  }
  return result;
}

std::string sentence(const std::string& file, int line, const std::string& found,
                     const std::string& expected) {
  const std::string place = line == 0 ? file : fmt::format("{}:{}", file, line);
  return on_one_line(fmt::format("{}: found {}, expected {}", place, found, expected));
}

}  // namespace

InputError::InputError(std::string file, int line, std::string found, std::string expected)
    : std::runtime_error(sentence(file, line, found, expected)),
      file_(std::move(file)),
      line_(line),
      found_(std::move(found)),
      expected_(std::move(expected)) {}

void fail_ensure(const char* file, int line, const std::string& text) {
  throw std::logic_error(fmt::format("{}:{}: {}", file, line, text));
}

}  // namespace frazil
