#include "profiles/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "profiles/printable_text.h"

namespace frazil {
namespace {

std::string sentence(const std::string& file, int line, const std::string& found,
                     const std::string& expected) {
  const std::string place = line == 0 ? file : fmt::format("{}:{}", file, line);
  return to_one_line(fmt::format("{}: found {}, expected {}", place, found, expected));
}

ExitCode code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
      return ExitCode::kStorage;
    case EACCES:
    case EPERM:
    case EROFS:
      return ExitCode::kNoPermission;
  }
  return ExitCode::kBadInput;
}

}  // namespace

std::string to_one_line(std::string_view text) {
  return escape_controls(text, ControlForm::kOneLine);
}

InputError::InputError(std::string file, int line, std::string found, std::string expected,
                       ExitCode code)
    : std::runtime_error(sentence(file, line, found, expected)),
      file_(std::move(file)),
      line_(line),
      found_(std::move(found)),
      expected_(std::move(expected)),
      code_(code) {}

void fail_system(const std::string& file, int error, const std::string& call,
                 const std::string& expected) {
  const std::string what = std::generic_category().message(error);
  throw InputError(file, 0,
                   call.empty() ? fmt::format("the error \"{}\"", what)
                                : fmt::format("the error \"{}\" of {}", what, call),
                   expected, code_of(error));
}

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
