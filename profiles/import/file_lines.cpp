#include "profiles/import/file_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlank = " \t";
constexpr std::size_t kLongestQuote = 40;

bool is_control(char character) {
  const auto byte = static_cast<unsigned char>(character);
  return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

void check_text(const FileLine& line, const std::string& file) {
  if (std::any_of(line.text.begin(), line.text.end(), is_control)) {
    throw InputError(file, line.number, "a control character", "a line of text");
  }
  // to_one_line writes a tab, and every byte that is not UTF-8, as four characters.
  const auto tabs = static_cast<std::size_t>(std::count(line.text.begin(), line.text.end(), '\t'));
  if (to_one_line(line.text).size() != line.text.size() + 3 * tabs) {
    throw InputError(file, line.number, "bytes that are not UTF-8", "UTF-8 text");
  }
}

}  // namespace

FileLines::FileLines(std::string_view text, const std::string& file) : rest_(text), file_(file) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

std::optional<FileLine> FileLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    FileLine line{++lines_, rest_.substr(0, end)};
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    if (trim(line.text).empty()) continue;
    check_text(line, file_);
    has_text_ = true;
    return line;
  }
  if (!has_text_) throw InputError(file_, 1, "no text", "at least one line");
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::string quote(std::string_view text) {
  if (text.size() <= kLongestQuote) return fmt::format("`{}`", text);
  std::size_t size = kLongestQuote;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) --size;
  return fmt::format("`{}...`", text.substr(0, size));
}

}  // namespace frazil
