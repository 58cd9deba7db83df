#pragma once
// Shared by the readers of Sailor's JSON files, profiles/import/sailor_*.cpp alone: numbers as
// keys, layers in order, seconds. All errors are InputError with file, line and path.

#include <functional>
#include <string>
#include <vector>

#include "profiles/json.h"
#include "profiles/units.h"

namespace frazil {

inline constexpr int kLargestSailorNumber = 1'000'000;  // the largest number in a key
inline constexpr double kLongestSailorTime = 1e6;       // seconds

// Reads a key that is a whole number in [minimum, kLargestSailorNumber], without sign or leading
// zeros. Throws for any other key; the message names `noun` ("a micro-batch size").
int parse_sailor_key(const std::string& key, const JsonCursor& value, int minimum,
                     const std::string& noun);

// Calls `visit(number, value)` for each member of an object with such keys. Throws when the object
// is empty.
void visit_numbered(const JsonCursor& object, int minimum, const std::string& noun,
                    const std::function<void(int, const JsonCursor&)>& visit);

// Returns the values of {"0": ..., "1": ...} in the order of their keys. Throws when a key is
// missing.
std::vector<JsonCursor> take_layers(const JsonCursor& object);

// Reads seconds from 0 to kLongestSailorTime, rounded to the nearest nanosecond.
Duration take_seconds(const JsonCursor& value);

}  // namespace frazil
