#pragma once
// Strict JSON for every file of Frazil. Each value knows its line. Duplicate keys, nesting deeper
// than 64, numbers that are not finite or do not fit, and text after the end are errors.
// A reader walks the document with JsonCursor and takes an object's members through JsonFields,
// which refuses members that nobody asked for. All errors are InputError with file, line and path.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frazil {

struct JsonDocument;  // the text and its values' places; lives as long as a cursor points into it
class JsonItems;

// A value inside a parsed document. Cheap to copy.
class JsonCursor {
 public:
  // Throws InputError "<file>:<line>: found <found> at <path>, expected <expected>".
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const;

  int line() const;
  const std::string& file() const;
  std::string path() const;      // "$.stages[1].layers"
  std::string describe() const;  // the value, for messages: `-3`, `"abc"`, `an object`

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_integer() const;

  // Each function throws unless the value has its type and lies in the closed range.
  std::int64_t integer(std::int64_t minimum, std::int64_t maximum) const;
  double real(double minimum, double maximum) const;  // integers are taken too
  std::string number_text() const;                    // an integer or a real, as it is written
  bool boolean() const;
  std::string text() const;
  JsonItems items() const;  // of an array

 private:
  friend class JsonFields;
  friend class JsonItems;
  friend JsonCursor parse_json(std::string_view, const std::string&, int);
  std::shared_ptr<const JsonDocument> document_;
  std::size_t node_ = 0;
};

// The items of an array, found as they are asked for, so that they take no memory. To index many of
// them, take a vector: an index and size() walk from the first item on.
class JsonItems {
 public:
  class Iterator {
   public:
    const JsonCursor& operator*() const { return at_; }
    const JsonCursor* operator->() const { return &at_; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_.node_ == other.at_.node_; }

   private:
    friend class JsonItems;
    explicit Iterator(JsonCursor at) : at_(std::move(at)) {}
    JsonCursor at_;
  };

  explicit JsonItems(const JsonCursor& array) : array_(array) {}  // requires: an array

  Iterator begin() const;
  Iterator end() const;
  bool empty() const { return begin() == end(); }
  std::size_t size() const;
  JsonCursor operator[](std::size_t index) const;  // requires: index < size()
  operator std::vector<JsonCursor>() const;

 private:
  JsonCursor array_;
};

// The members of one object. Call finish() after the last member is taken: it throws for a member
// that nobody asked for and names the known keys.
class JsonFields {
 public:
  explicit JsonFields(const JsonCursor& object);  // throws unless it is an object

  JsonCursor required(const std::string& key);
  std::optional<JsonCursor> optional(const std::string& key);
  std::vector<std::string> keys() const;  // in file order, taken or not
  void finish() const;

 private:
  JsonCursor member(std::size_t node) const;

  JsonCursor object_;
  std::vector<std::uint32_t> order_;   // nodes of the members
  std::vector<std::uint32_t> sorted_;  // the same by key
  std::vector<std::string> asked_;
};

// Parses one JSON value that fills `text`; `first_line` is the number of its first line in `file`.
JsonCursor parse_json(std::string_view text, const std::string& file, int first_line = 1);

// Takes the members "format" and "version". Throws unless they are the given ones.
void expect_format(JsonFields& fields, const std::string& format, int version);

// Returns `text` as a JSON string with its quotes, for writers. Throws InputError unless `text` is
// UTF-8.
std::string json_string(std::string_view text);

}  // namespace frazil
