#include "profiles/error.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "profiles/printable_text.h"

namespace frazil {
namespace {

std::string sentence(const std::string& file, int line, const std::string& found,
                     const std::string& expected) {
  const std::string place = line == 0 ? file : fmt::format("{}:{}", file, line);
  return to_one_line(fmt::format("{}: found {}, expected {}", place, found, expected));
}

}  // namespace

std::string to_one_line(std::string_view text) {
  return escape_controls(text, ControlForm::kOneLine);
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
