#include "profiles/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
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

// Orders members by their keys.
bool comes_before(const JsonDocument& document, std::uint32_t a, std::uint32_t b) {
  const std::string_view first = document.raw_key(a);
  const std::string_view second = document.raw_key(b);
  const bool is_plain =
      first.find('\\') == std::string_view::npos && second.find('\\') == std::string_view::npos;
  return is_plain ? first < second : document.key(a) < document.key(b);
}

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
  throw InputError(file(), line(), fmt::format("{} at {}", found, path()), expected);
}

int JsonCursor::line() const { return document_->line(node_); }
const std::string& JsonCursor::file() const { return document_->file; }
std::string JsonCursor::path() const { return document_->path(node_); }

std::string JsonCursor::describe() const {
  switch (document_->kind(node_)) {
    case JsonKind::kNull:
      return "`null`";
    case JsonKind::kBoolean:
      return boolean() ? "`true`" : "`false`";
    case JsonKind::kInteger:
      return fmt::format("`{}`", document_->number(node_));
    case JsonKind::kReal:
      return quote_raw(document_->number(node_));
    case JsonKind::kString:
      return fmt::format("`{}`", json_string(shortened(document_->string(node_))));
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "";
}

bool JsonCursor::is_null() const { return document_->kind(node_) == JsonKind::kNull; }
bool JsonCursor::is_object() const { return document_->kind(node_) == JsonKind::kObject; }
bool JsonCursor::is_array() const { return document_->kind(node_) == JsonKind::kArray; }
bool JsonCursor::is_string() const { return document_->kind(node_) == JsonKind::kString; }
bool JsonCursor::is_integer() const { return document_->kind(node_) == JsonKind::kInteger; }

std::int64_t JsonCursor::integer(std::int64_t minimum, std::int64_t maximum) const {
  if (is_integer()) {
    const std::string_view digits = document_->number(node_);
    std::int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (value >= minimum && value <= maximum) return value;
  }
  fail(describe(), fmt::format("an integer from {} to {}", minimum, maximum));
}

double JsonCursor::real(double minimum, double maximum) const {
  const JsonKind kind = document_->kind(node_);
  if (kind == JsonKind::kInteger || kind == JsonKind::kReal) {
    const double value = std::strtod(std::string(document_->number(node_)).c_str(), nullptr);
    if (value >= minimum && value <= maximum) return value;
  }
  fail(describe(), fmt::format("a number from {} to {}", minimum, maximum));
}

std::string JsonCursor::number_text() const {
  const JsonKind kind = document_->kind(node_);
  if (kind != JsonKind::kInteger && kind != JsonKind::kReal) fail(describe(), "a number");
  return std::string(document_->number(node_));
}

bool JsonCursor::boolean() const {
  if (document_->kind(node_) != JsonKind::kBoolean) fail(describe(), "`true` or `false`");
  return document_->text[document_->nodes[node_].at] == 't';
}

std::string JsonCursor::text() const {
  if (!is_string()) fail(describe(), "a string");
  return document_->string(node_);
}

JsonItems JsonCursor::items() const {
  if (!is_array()) fail(describe(), "an array");
  return JsonItems(*this);
}

JsonItems::Iterator& JsonItems::Iterator::operator++() {
  at_.node_ = at_.document_->nodes[at_.node_].end;
  return *this;
}

JsonItems::Iterator JsonItems::begin() const {
  JsonCursor first = array_;
  ++first.node_;
  return Iterator(std::move(first));
}

JsonItems::Iterator JsonItems::end() const {
  JsonCursor last = array_;
  last.node_ = array_.document_->nodes[array_.node_].end;
  return Iterator(std::move(last));
}

std::size_t JsonItems::size() const {
  std::size_t count = 0;
  for (Iterator at = begin(); !(at == end()); ++at) ++count;
  return count;
}

JsonCursor JsonItems::operator[](std::size_t index) const {
  Iterator at = begin();
  for (; index > 0; --index) ++at;
  return *at;
}

JsonItems::operator std::vector<JsonCursor>() const {
  std::vector<JsonCursor> items;
  items.reserve(size());
  for (const JsonCursor& item : *this) items.push_back(item);
  return items;
}

JsonFields::JsonFields(const JsonCursor& object) : object_(object) {
  if (!object.is_object()) object.fail(object.describe(), "an object");
  const JsonDocument& document = *object.document_;
  const std::size_t end = document.nodes[object.node_].end;
  for (std::size_t child = object.node_ + 1; child < end; child = document.nodes[child].end) {
    order_.push_back(static_cast<std::uint32_t>(child));
  }
  sorted_ = order_;
  std::sort(sorted_.begin(), sorted_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return comes_before(document, a, b); });
}

JsonCursor JsonFields::member(std::size_t node) const {
  JsonCursor member = object_;
  member.node_ = node;
  return member;
}

JsonCursor JsonFields::required(const std::string& key) {
  const std::optional<JsonCursor> member = optional(key);
  if (member) return *member;
  const std::vector<std::string> known = keys();
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = nearest_name(key, names);
  const bool is_misspelt = !near.empty() && count_edits(key, near) <= kMostMisspelt;
  const std::string meant =
      is_misspelt ? fmt::format("; did you mean it by {}?", json_string(near)) : "";
  object_.fail("an object without " + json_string(key), "the key " + json_string(key) + meant);
}

std::optional<JsonCursor> JsonFields::optional(const std::string& key) {
  asked_.push_back(key);
  const JsonDocument& document = *object_.document_;
  const auto found = std::lower_bound(
      sorted_.begin(), sorted_.end(), key,
      [&](std::uint32_t node, const std::string& wanted) { return document.key(node) < wanted; });
  if (found == sorted_.end() || document.key(*found) != key) return std::nullopt;
  return member(*found);
}

std::vector<std::string> JsonFields::keys() const {
  std::vector<std::string> keys;
  keys.reserve(order_.size());
  for (const std::uint32_t node : order_) keys.push_back(object_.document_->key(node));
  return keys;
}

void JsonFields::finish() const {
  for (const std::uint32_t node : order_) {
    const std::string key = object_.document_->key(node);
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    std::string known;
    for (const std::string& name : asked_) {
      known += (known.empty() ? "" : ", ") + json_string(name);
    }
    std::vector<std::string_view> lacking;
    const std::vector<std::string> present = keys();
    std::copy_if(asked_.begin(), asked_.end(), std::back_inserter(lacking),
                 [&](const std::string& name) {
                   return std::find(present.begin(), present.end(), name) == present.end();
                 });
    const std::string_view near = nearest_name(key, lacking);
    if (!near.empty()) known += fmt::format("; did you mean {}?", json_string(near));
    throw InputError(
        object_.file(), object_.document_->key_line(node),
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
