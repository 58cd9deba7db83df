#pragma once
// The parsed document behind JsonCursor. Only json.cpp and json_parse.cpp include this header.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

enum class JsonKind { kNull, kBoolean, kInteger, kReal, kString, kArray, kObject };

struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  int line = 0;
  int key_line = 0;          // the line of a member's key
  std::int64_t integer = 0;  // a boolean is 0 or 1
  double real = 0;
  std::string text;     // a string, or a real as it was written
  std::string key;      // a member's key
  std::size_t end = 0;  // one past the last node below this one
};

// The nodes stand in the order of the text: the first child of a node follows its parent, and the
// next sibling of a node begins at its `end`.
struct JsonDocument {
  std::string file;
  std::vector<JsonNode> nodes;
};

// Cuts text that is too long for a message, never inside a UTF-8 character.
std::string shortened(std::string_view text);

// Quotes a piece of a file for a message, in backticks. The piece may hold any bytes.
std::string quote_raw(std::string_view text);

// Returns the path of a member: "$.layers", or "$[\"a key\"]" when the key is no plain word.
std::string member_path(const std::string& object, const std::string& key);

}  // namespace frazil
