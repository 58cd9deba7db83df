#pragma once
// The parsed document behind JsonCursor. Only json.cpp, json_document.cpp and json_parse.cpp
// include this header. A document keeps the text and, of each value, where it stands: 8 bytes.
// Values are read off the text when they are asked for, so that a document of n bytes takes at most
// 5 n bytes: no value is shorter than two bytes with its comma.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

// The longest text of a document, so that a place in it and a number of values fit 32 bits.
inline constexpr std::size_t kLongestJson = (std::size_t{1} << 32) - 1;

enum class JsonKind { kNull, kBoolean, kInteger, kReal, kString, kArray, kObject };

struct JsonNode {
  std::uint32_t at = 0;   // place of the value's first character
  std::uint32_t end = 0;  // one past the last node below this one
};

// The nodes stand in the order of the text: the first child of a node follows its parent, and the
// next sibling of a node begins at its `end`. The text is good JSON.
struct JsonDocument {
  std::string file;
  std::string text;
  int first_line = 1;
  std::deque<JsonNode> nodes;              // a list that never moves while it grows
  std::vector<std::uint32_t> line_breaks;  // before each kLineBlock-th character

  JsonKind kind(std::size_t node) const;
  // Returns the number as it is written.
  std::string_view number(std::size_t node) const;
  std::string string(std::size_t node) const;
  // A member's key: resolved, or as it is written between its quotes.
  std::string key(std::size_t node) const;
  std::string_view raw_key(std::size_t node) const;
  int line(std::size_t node) const;
  int key_line(std::size_t node) const;
  int line_at(std::size_t place) const;
  std::string path(std::size_t node) const;
};

// Makes a document of a text, without nodes yet.
JsonDocument begin_document(std::string_view text, const std::string& file, int first_line);

// Returns what a good string means whose opening quote is at `place`, and the text between its
// quotes.
std::string string_at(std::string_view text, std::size_t place);
std::string_view raw_string_at(std::string_view text, std::size_t place);
// Returns the place of the quote that opens the good string whose closing quote is at `close`.
std::size_t find_opening_quote(std::string_view text, std::size_t close);
// Says whether a character may stand in a number.
bool is_of_number(char character);

// Cuts text that is too long for a message, never inside a UTF-8 character.
std::string shortened(std::string_view text);

// Quotes a piece of a file for a message, in backticks. The piece may hold any bytes.
std::string quote_raw(std::string_view text);

// Returns the path of a member: "$.layers", or "$[\"a key\"]" when the key is no plain word.
std::string member_path(const std::string& object, const std::string& key);

}  // namespace frazil
