#include "profiles/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "profiles/error.h"
#include "profiles/json_document.h"
#include "profiles/known_names.h"

namespace frazil {
namespace {

constexpr std::size_t kLongestQuote = 40;
constexpr std::size_t kMostMisspelt = 2;  // edits by which a missing key is told from another one

}  // namespace

std::string member_path(const std::string& object, const std::string& key) {
  const bool is_plain = !key.empty() && std::all_of(key.begin(), key.end(), [](char character) {
    return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
  });
  if (is_plain) return object + "." + key;
  return object + "[" + json_string(shortened(key)) + "]";
}

std::string shortened(std::string_view text) {
  if (text.size() <= kLongestQuote) return std::string(text);
  std::size_t size = kLongestQuote;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return std::string(text.substr(0, size)) + "...";
}

std::string quote_raw(std::string_view text) {
  std::string printable;
  for (const char character : shortened(text)) {
    const auto byte = static_cast<unsigned char>(character);
    printable += byte < 0x80 ? std::string(1, character) : fmt::format("\\x{:02x}", byte);
  }
  return "`" + printable + "`";
}

std::string json_string(std::string_view text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw InputError(quote_raw(text), 0, "bytes that are not UTF-8", "UTF-8 text");
  }
}

void JsonCursor::fail(const std::string& found, const std::string& expected) const {
  throw InputError(file(), line(), fmt::format("{} at {}", found, path_), expected);
}

int JsonCursor::line() const { return document_->nodes[node_].line; }
const std::string& JsonCursor::file() const { return document_->file; }
std::string JsonCursor::path() const { return path_; }

std::string JsonCursor::describe() const {
  const JsonNode& node = document_->nodes[node_];
  switch (node.kind) {
    case JsonKind::kNull:
      return "`null`";
    case JsonKind::kBoolean:
      return node.integer != 0 ? "`true`" : "`false`";
    case JsonKind::kInteger:
      return fmt::format("`{}`", node.integer);
    case JsonKind::kReal:
      return quote_raw(node.text);
    case JsonKind::kString:
      return fmt::format("`{}`", json_string(shortened(node.text)));
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "";
}

bool JsonCursor::is_null() const { return document_->nodes[node_].kind == JsonKind::kNull; }
bool JsonCursor::is_object() const { return document_->nodes[node_].kind == JsonKind::kObject; }
bool JsonCursor::is_array() const { return document_->nodes[node_].kind == JsonKind::kArray; }
bool JsonCursor::is_string() const { return document_->nodes[node_].kind == JsonKind::kString; }
bool JsonCursor::is_integer() const { return document_->nodes[node_].kind == JsonKind::kInteger; }

std::int64_t JsonCursor::integer(std::int64_t minimum, std::int64_t maximum) const {
  const std::int64_t value = document_->nodes[node_].integer;
  if (!is_integer() || value < minimum || value > maximum) {
    fail(describe(), fmt::format("an integer from {} to {}", minimum, maximum));
  }
  return value;
}

double JsonCursor::real(double minimum, double maximum) const {
  const JsonNode& node = document_->nodes[node_];
  const double value = is_integer() ? static_cast<double>(node.integer) : node.real;
  const bool is_number = is_integer() || node.kind == JsonKind::kReal;
  if (!is_number || value < minimum || value > maximum) {
    fail(describe(), fmt::format("a number from {} to {}", minimum, maximum));
  }
  return value;
}

std::string JsonCursor::number_text() const {
  const JsonNode& node = document_->nodes[node_];
  if (is_integer()) return fmt::format("{}", node.integer);
  if (node.kind != JsonKind::kReal) fail(describe(), "a number");
  return node.text;
}

bool JsonCursor::boolean() const {
  if (document_->nodes[node_].kind != JsonKind::kBoolean) fail(describe(), "`true` or `false`");
  return document_->nodes[node_].integer != 0;
}

const std::string& JsonCursor::text() const {
  if (!is_string()) fail(describe(), "a string");
  return document_->nodes[node_].text;
}

std::vector<JsonCursor> JsonCursor::items() const {
  if (!is_array()) fail(describe(), "an array");
  std::vector<JsonCursor> result;
  const std::vector<JsonNode>& nodes = document_->nodes;
  for (std::size_t child = node_ + 1; child < nodes[node_].end; child = nodes[child].end) {
    JsonCursor item = *this;
    item.node_ = child;
    item.path_ = fmt::format("{}[{}]", path_, result.size());
    result.push_back(std::move(item));
  }
  return result;
}

JsonFields::JsonFields(const JsonCursor& object) : object_(object) {
  if (!object.is_object()) object.fail(object.describe(), "an object");
  const std::vector<JsonNode>& nodes = object.document_->nodes;
  const std::size_t end = nodes[object.node_].end;
  for (std::size_t child = object.node_ + 1; child < end; child = nodes[child].end) {
    JsonCursor member = object;
    member.node_ = child;
    member.path_ = member_path(object.path_, nodes[child].key);
    order_.push_back(nodes[child].key);
    members_.emplace(nodes[child].key, std::move(member));
  }
}

JsonCursor JsonFields::required(const std::string& key) {
  const std::optional<JsonCursor> member = optional(key);
  if (member) return *member;
  const std::vector<std::string_view> names(order_.begin(), order_.end());
  const std::string_view near = nearest_name(key, names);
  const bool is_misspelt = !near.empty() && count_edits(key, near) <= kMostMisspelt;
  const std::string meant =
      is_misspelt ? fmt::format("; did you mean it by {}?", json_string(near)) : "";
  object_.fail("an object without " + json_string(key), "the key " + json_string(key) + meant);
}

std::optional<JsonCursor> JsonFields::optional(const std::string& key) {
  asked_.push_back(key);
  const auto member = members_.find(key);
  if (member == members_.end()) return std::nullopt;
  return member->second;
}

std::vector<std::string> JsonFields::keys() const { return order_; }

void JsonFields::finish() const {
  for (const std::string& key : order_) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    std::string known;
    for (const std::string& name : asked_) {
      known += (known.empty() ? "" : ", ") + json_string(name);
    }
    std::vector<std::string_view> lacking;
    std::copy_if(asked_.begin(), asked_.end(), std::back_inserter(lacking),
                 [&](const std::string& name) { return members_.count(name) == 0; });
    const std::string_view near = nearest_name(key, lacking);
    if (!near.empty()) known += fmt::format("; did you mean {}?", json_string(near));
    const JsonCursor& member = members_.at(key);
    throw InputError(
        member.file(), member.document_->nodes[member.node_].key_line,
        fmt::format("the unknown key {} at {}", json_string(shortened(key)), object_.path()),
        known.empty() ? "an empty object" : "no keys but " + known);
  }
}

void expect_format(JsonFields& fields, const std::string& format, int version) {
  const JsonCursor format_field = fields.required("format");
  if (format_field.text() != format) {
    format_field.fail(format_field.describe(), fmt::format("`{}`", json_string(format)));
  }
  const JsonCursor version_field = fields.required("version");
  if (version_field.describe() != fmt::format("`{}`", version)) {
    version_field.fail(version_field.describe(), fmt::format("version {}", version));
  }
}

}  // namespace frazil
