#pragma once
// How json.cpp keeps a parsed document; for the json_*.cpp sources alone.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frazil {

enum class JsonKind { kNull, kBoolean, kInteger, kReal, kString, kArray, kObject };

struct JsonNode {
  JsonKind kind = JsonKind::kNull;
  int line = 0;
  int key_line = 0;          // of a member
  std::int64_t integer = 0;  // or 0, 1 of a boolean
  double real = 0;
  std::string text;     // of a string; how a real was written
  std::string key;      // of a member
  std::size_t end = 0;  // one past the last node below this one
};

// The nodes in the order of the text: the first child of a node follows it, and the next sibling of
// a node begins at its `end`.
struct JsonDocument {
  std::string file;
  std::vector<JsonNode> nodes;
};

// Cuts text that is too long for a message, never inside a UTF-8 character.
std::string shortened(std::string_view text);

// A piece of a file for a message, in backticks; it may hold any bytes.
std::string quote_raw(std::string_view text);

// The path of a member: "$.layers", or "$[\"a key\"]" of a key that is no plain word.
std::string member_path(const std::string& object, const std::string& key);

}  // namespace frazil
