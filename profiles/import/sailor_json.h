#pragma once
// What the readers of Sailor's JSON files share: numbers as keys, seconds, files with keys that
// nobody needs. For profiles/import/sailor_*.cpp alone.

#include <functional>
#include <string>
#include <vector>

#include "profiles/json.h"
#include "profiles/units.h"

namespace frazil {

inline constexpr int kLargestSailorNumber = 1'000'000;  // of what a key counts
inline constexpr double kLongestSailorTime = 1e6;       // seconds

// A key that is a whole number in [minimum, kLargestSailorNumber], without sign or leading zeros.
// Refuses any other, naming `noun` ("a micro-batch size").
int parse_sailor_key(const std::string& key, const JsonCursor& value, int minimum,
                     const std::string& noun);

// Calls `visit(number, value)` for each member of an object with such keys. Throws when it is
// empty.
void visit_numbered(const JsonCursor& object, int minimum, const std::string& noun,
                    const std::function<void(int, const JsonCursor&)>& visit);

// The values of {"0": ..., "1": ...} in the order of their keys. Throws where one is missing.
std::vector<JsonCursor> take_layers(const JsonCursor& object);

// Seconds, 0 or more, to the nearest nanosecond.
Duration take_seconds(const JsonCursor& value);

}  // namespace frazil
