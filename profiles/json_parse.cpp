#include "profiles/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/json_document.h"

namespace frazil {
namespace {

constexpr std::size_t kDeepestNesting = 64;

// The parser's place in the text. The parser reads one character past a number.
struct Progress {
  std::string_view text;
  std::size_t position = 0;
  int line = 1;

  int last_line() const { return position > 0 && text[position - 1] == '\n' ? line - 1 : line; }
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Progress* progress) : at_(at), progress_(progress) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++progress_->line;
    ++progress_->position;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  Progress* progress_;
};

bool is_word(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' ||
         character == '+' || character == '-' || character == '.';
}

// Returns where the parser gave up: at the last character read, or at the end of a word cut short,
// as in `tru]`.
std::size_t place_of_failure(std::string_view text) {
  const std::size_t last = text.size() - 1;
  if (is_word(text[last]) || last == 0 || !is_word(text[last - 1])) return last;
  for (const std::string_view whole : {"true", "false", "null"}) {
    if (text.substr(0, last).ends_with(whole)) return last;
  }
  const bool follows_letter = std::isalpha(static_cast<unsigned char>(text[last - 1])) != 0;
  const bool follows_point = text[last - 1] == '.' || text[last - 1] == '-';
  return follows_letter || follows_point ? last - 1 : last;
}

// Returns the whole word at which the parser gave up: `-Infinity`, not `-I`. The parser's own token
// is of no use here, as it may still hold earlier text.
std::string bad_word(const Progress& progress) {
  const std::size_t place = place_of_failure(progress.text.substr(0, progress.position));
  std::size_t first = place;
  std::size_t last = place + 1;
  if (is_word(progress.text[place])) {
    while (first > 0 && is_word(progress.text[first - 1])) --first;
    while (last < progress.text.size() && is_word(progress.text[last])) ++last;
  }
  return quote_raw(progress.text.substr(first, last - first));
}

struct Finding {
  std::string found;
  std::string expected;
};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Finding explain_bad_string(std::string_view message) {
  if (holds(message, "missing closing quote")) {
    return {"unexpected end of the text in a string", "a complete JSON value"};
  }
  if (holds(message, "UTF-8")) return {"bytes that are not UTF-8 in a string", "UTF-8 text"};
  if (holds(message, "control character")) {
    return {"a control character in a string", "its escape, such as `\\n`"};
  }
  return {"an escape that JSON does not know in a string", "a valid escape, such as `\\n`"};
}

// Returns what the grammar allows where an unexpected token stands.
std::string expected_token(std::string_view message) {
  if (holds(message, "expected end of input")) return "nothing after the JSON value";
  if (holds(message, "while parsing object key")) return "a key in double quotes";
  if (holds(message, "while parsing object separator")) return "`:` after the key";
  if (holds(message, "while parsing object -")) return "`,` or `}`";
  if (holds(message, "while parsing array -")) return "`,` or `]`";
  return "a JSON value";
}

// Condenses the parser's message. The fixed phrases of messages tell the classes of errors apart.
Finding explain(std::string_view message, const std::string& token, const Progress& progress) {
  if (holds(message, "number overflow")) {
    return {quote_raw(token), "a number that fits a 64-bit float"};
  }
  if (holds(message, "invalid string")) return explain_bad_string(message);
  if (holds(message, "invalid number")) return {bad_word(progress), "a JSON number"};
  if (holds(message, "invalid BOM")) return {"a part of a byte order mark", "UTF-8 text"};
  if (holds(message, "unexpected end of input")) {
    return {"unexpected end of the text", "a complete JSON value"};
  }
  const bool is_whole_token =
      holds(message, "unexpected string literal") || holds(message, "unexpected number literal");
  return {is_whole_token ? quote_raw(token) : bad_word(progress), expected_token(message)};
}

// The keys of an object so far, by their places in the text: a hash table with open addresses.
class KeySet {
 public:
  // Adds the key whose opening quote is at `place`; returns the place of an equal key, if any.
  std::optional<std::uint32_t> add(std::string_view text, std::uint32_t place,
                                   std::string_view key) {
    if (2 * (count_ + 1) > places_.size()) grow(text);
    std::size_t slot = first_slot(key);
    for (; places_[slot] != kFree; slot = (slot + 1) % places_.size()) {
      if (string_at(text, places_[slot]) == key) return places_[slot];
    }
    places_[slot] = place;
    ++count_;
    return std::nullopt;
  }

 private:
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

  std::size_t first_slot(std::string_view key) const {
    return std::hash<std::string_view>{}(key) % places_.size();
  }

  void grow(std::string_view text) {
    std::vector<std::uint32_t> old(std::max<std::size_t>(8, 2 * places_.size()), kFree);
    std::swap(old, places_);
    for (const std::uint32_t place : old) {
      if (place == kFree) continue;
      std::size_t slot = first_slot(string_at(text, place));
      while (places_[slot] != kFree) slot = (slot + 1) % places_.size();
      places_[slot] = place;
    }
  }

  std::vector<std::uint32_t> places_;
  std::size_t count_ = 0;
};

// Receives the parser's events and lists the nodes.
class JsonBuilder {
 public:
  JsonBuilder(JsonDocument* document, const Progress* progress)
      : document_(document), progress_(progress) {}

  bool null() { return add(progress_->position - 4); }
  bool boolean(bool value) { return add(progress_->position - (value ? 4 : 5)); }
  // The parser calls this only for a leading minus.
  bool number_integer(std::int64_t) { return add(number_place()); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail_integer(std::to_string(value));
    }
    return add(number_place());
  }
  // The parser also calls this for integers that do not fit 64 bits. They must not become rounded
  // reals.
  bool number_float(double, const std::string& written) {
    if (written.find_first_of(".eE") == std::string::npos) fail_integer(written);
    return add(number_place());
  }
  bool string(std::string&) { return add(string_place()); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    const auto place = static_cast<std::uint32_t>(string_place());
    if (const auto first = open_.back().keys.add(progress_->text, place, key)) {
      throw InputError(document_->file, progress_->last_line(),
                       fmt::format("the key {} again", json_string(shortened(key))),
                       fmt::format("it once (first on line {})", document_->line_at(*first)));
    }
    key_ = std::move(key);
    return true;
  }

  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception& error) {
    Finding finding = explain(error.what(), token, *progress_);
    if (holds(error.what(), "number overflow")) finding.found += " at " + path();
    throw InputError(document_->file, progress_->last_line(), std::move(finding.found),
                     std::move(finding.expected));
  }

 private:
  struct Frame {
    std::size_t node;
    KeySet keys;
  };

  // The parser stands behind the closing quote.
  std::size_t string_place() const {
    return find_opening_quote(progress_->text, progress_->position - 1);
  }
  // The parser stands behind the character that ended the number, if there is one.
  std::size_t number_place() const {
    const std::string_view text = progress_->text;
    std::size_t place = progress_->position - 1;
    if (is_of_number(text[place])) ++place;
    while (place > 0 && is_of_number(text[place - 1])) --place;
    return place;
  }

  bool add(std::size_t place) {
    const std::size_t next = document_->nodes.size() + 1;
    document_->nodes.push_back(
        {static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(next)});
    return true;
  }
  bool open() {
    if (open_.size() == kDeepestNesting) {
      throw InputError(document_->file, progress_->last_line(),
                       fmt::format("nesting deeper than {}", kDeepestNesting),
                       fmt::format("at most {} arrays and objects in each other", kDeepestNesting));
    }
    add(progress_->position - 1);
    open_.push_back({document_->nodes.size() - 1, {}});
    return true;
  }
  bool close() {
    document_->nodes[open_.back().node].end = static_cast<std::uint32_t>(document_->nodes.size());
    open_.pop_back();
    return true;
  }
  [[noreturn]] void fail_integer(const std::string& written) const {
    throw InputError(document_->file, progress_->last_line(),
                     fmt::format("{} at {}", quote_raw(written), path()),
                     "an integer that fits 64 bits");
  }
  // Returns the path of the value that comes next, as a cursor would name it.
  std::string path() const {
    const std::deque<JsonNode>& nodes = document_->nodes;
    std::string path = "$";
    for (std::size_t depth = 0; depth < open_.size(); ++depth) {
      const std::size_t parent = open_[depth].node;
      const bool is_last = depth + 1 == open_.size();
      const std::size_t child = is_last ? nodes.size() : open_[depth + 1].node;
      if (document_->kind(parent) == JsonKind::kObject) {
        path = member_path(path, is_last ? key_ : document_->key(child));
        continue;
      }
      int before = 0;
      for (std::size_t other = parent + 1; other < child; other = nodes[other].end) ++before;
      path += fmt::format("[{}]", before);
    }
    return path;
  }

  JsonDocument* document_;
  const Progress* progress_;
  std::vector<Frame> open_;
  std::string key_;
};

// The parser takes a zero byte for the end of the text, so it must not see one.
void refuse_zero_byte(std::string_view text, const std::string& file, int first_line) {
  const std::size_t zero = text.find('\0');
  if (zero == std::string_view::npos) return;
  const auto newlines =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
  throw InputError(file, first_line + static_cast<int>(newlines), "a zero byte", "JSON text");
}

}  // namespace

JsonCursor parse_json(std::string_view text, const std::string& file, int first_line) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError(file, first_line, "no text", "a JSON value");
  }
  refuse_zero_byte(text, file, first_line);
  if (text.size() > kLongestJson) throw InputError(file, first_line, "4 GiB of text", "less");
  auto document = std::make_shared<JsonDocument>(begin_document(text, file, first_line));
  text = document->text;
  Progress progress{text, 0, first_line};
  JsonBuilder builder(document.get(), &progress);
  const bool parsed =
      nlohmann::json::sax_parse(CountingIterator(text.data(), &progress),
                                CountingIterator(text.data() + text.size(), &progress), &builder);
  ENSURE(parsed && !document->nodes.empty(), "the parser reports failure by an exception");
  JsonCursor root;
  root.document_ = std::move(document);
  return root;
}

}  // namespace frazil
