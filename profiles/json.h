#pragma once
// Strict JSON for every file of Frazil. Each value knows its line. Duplicate keys, nesting deeper
// than 64, numbers that are not finite or do not fit, and text after the end are errors.
// A reader walks the document with JsonCursor and takes an object's members through JsonFields,
// which refuses members that nobody asked for. All errors are InputError with file, line and path.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

struct JsonDocument;  // values in a flat list, with lines; lives as long as a cursor points into it

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
  const std::string& text() const;
  std::vector<JsonCursor> items() const;  // of an array

 private:
  friend class JsonFields;
  friend JsonCursor parse_json(std::string_view, const std::string&, int);
  std::shared_ptr<const JsonDocument> document_;
  std::size_t node_ = 0;
  std::string path_;
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
  JsonCursor object_;
  std::map<std::string, JsonCursor> members_;
  std::vector<std::string> order_;
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
