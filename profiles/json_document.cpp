#include "profiles/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace frazil {
namespace {

constexpr std::size_t kLineBlock = 1024;

std::uint32_t count_breaks(std::string_view text) {
  return static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n'));
}

// Says whether the character at `place` is escaped: an odd number of backslashes stands before it.
bool is_escaped(std::string_view text, std::size_t place) {
  std::size_t first = place;
  while (first > 0 && text[first - 1] == '\\') --first;
  return (place - first) % 2 == 1;
}

// Returns the place of the quote that closes the key of the value at `at`: only white space and a
// colon stand between them.
std::size_t find_key_end(std::string_view text, std::size_t at) { return text.rfind('"', at - 1); }

}  // namespace

bool is_of_number(char character) {
  return std::isdigit(static_cast<unsigned char>(character)) != 0 || character == '-' ||
         character == '+' || character == '.' || character == 'e' || character == 'E';
}

std::size_t find_opening_quote(std::string_view text, std::size_t close) {
  std::size_t place = text.rfind('"', close - 1);
  while (is_escaped(text, place)) place = text.rfind('"', place - 1);
  return place;
}

std::string_view raw_string_at(std::string_view text, std::size_t place) {
  std::size_t end = place + 1;
  while (text[end] != '"') end += text[end] == '\\' ? 2U : 1U;
  return text.substr(place + 1, end - place - 1);
}

std::string string_at(std::string_view text, std::size_t place) {
  const std::string_view raw = raw_string_at(text, place);
  if (raw.find('\\') == std::string_view::npos) return std::string(raw);
  return nlohmann::json::parse(text.substr(place, raw.size() + 2)).get<std::string>();
}

JsonDocument begin_document(std::string_view text, const std::string& file, int first_line) {
  JsonDocument document{file, std::string(text), first_line, {}, {}};
  document.line_breaks.reserve(text.size() / kLineBlock + 1);
  std::uint32_t breaks = 0;
  for (std::size_t at = 0; at <= text.size(); at += kLineBlock) {
    document.line_breaks.push_back(breaks);
    breaks += count_breaks(text.substr(at, kLineBlock));
  }
  return document;
}

JsonKind JsonDocument::kind(std::size_t node) const {
  switch (text[nodes[node].at]) {
    case 'n':
      return JsonKind::kNull;
    case 't':
    case 'f':
      return JsonKind::kBoolean;
    case '"':
      return JsonKind::kString;
    case '[':
      return JsonKind::kArray;
    case '{':
      return JsonKind::kObject;
    default:
      break;
  }
  // A zero that is written -0 is no integer.
  const std::string_view written = number(node);
  const bool is_real = written == "-0" || written.find_first_of(".eE") != std::string_view::npos;
  return is_real ? JsonKind::kReal : JsonKind::kInteger;
}

std::string_view JsonDocument::number(std::size_t node) const {
  const char* const begin = text.data() + nodes[node].at;
  const char* const end = std::find_if_not(begin, text.data() + text.size(), is_of_number);
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::string JsonDocument::string(std::size_t node) const { return string_at(text, nodes[node].at); }

std::string_view JsonDocument::raw_key(std::size_t node) const {
  const std::size_t close = find_key_end(text, nodes[node].at);
  const std::size_t open = find_opening_quote(text, close);
  return std::string_view(text).substr(open + 1, close - open - 1);
}

std::string JsonDocument::key(std::size_t node) const {
  const std::string_view raw = raw_key(node);
  return string_at(text, static_cast<std::size_t>(raw.data() - text.data()) - 1);
}

int JsonDocument::line(std::size_t node) const { return line_at(nodes[node].at); }

int JsonDocument::key_line(std::size_t node) const {
  return line_at(find_key_end(text, nodes[node].at));
}

int JsonDocument::line_at(std::size_t place) const {
  const std::size_t block = place / kLineBlock;
  const std::string_view before =
      std::string_view(text).substr(block * kLineBlock, place - block * kLineBlock);
  return first_line + static_cast<int>(line_breaks[block] + count_breaks(before));
}

std::string JsonDocument::path(std::size_t node) const {
  std::string path = "$";
  for (std::size_t at = 0; at != node;) {
    const bool is_member = kind(at) == JsonKind::kObject;
    std::size_t child = at + 1;
    std::size_t index = 0;
    for (; nodes[child].end <= node; child = nodes[child].end) ++index;
    path = is_member ? member_path(path, key(child)) : fmt::format("{}[{}]", path, index);
    at = child;
  }
  return path;
}

}  // namespace frazil
