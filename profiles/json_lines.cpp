#include "profiles/json_lines.h"

#include <charconv>
#include <optional>
#include <vector>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

// Returns the first part of the rest of a path: ".stages" or "[1]".
std::string_view first_part(std::string_view path) {
  const std::size_t end = path.find_first_of(".[", 1);
  return path.substr(0, end);
}

std::optional<JsonCursor> go_into(const JsonCursor& at, std::string_view part) {
  if (part.starts_with('.') && at.is_object()) {
    return JsonFields(at).optional(std::string(part.substr(1)));
  }
  if (!part.starts_with('[') || !at.is_array()) return std::nullopt;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(part.data() + 1, part.data() + part.size(), index);
  const std::vector<JsonCursor> items = at.items();
  if (error != std::errc{} || *end != ']' || index >= items.size()) return std::nullopt;
  return items[index];
}

}  // namespace

int find_line(const JsonCursor& root, std::string_view path) {
  JsonCursor at = root;
  std::string_view left = path.substr(path.empty() ? 0 : 1);
  while (!left.empty()) {
    const std::string_view part = first_part(left);
    const std::optional<JsonCursor> inner = go_into(at, part);
    if (!inner) break;
    at = *inner;
    left.remove_prefix(part.size());
  }
  return at.line();
}

LineOf lines_of(const std::filesystem::path& file) {
  return [file](const std::string& path) {
    std::error_code missing;
    if (!std::filesystem::is_regular_file(file, missing)) return 0;
    try {
      return find_line(parse_json(read_text_file(file), file.string()), path);
    } catch (const InputError&) {
      return 0;
    }
  };
}

}  // namespace frazil
