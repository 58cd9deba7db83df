#pragma once
// The property of a reader that has a writer: any text is refused in a sentence, or is read as
// something that is written and read again as the same.

#include <optional>
#include <string>
#include <string_view>

#include "tests/fuzz/property.h"

namespace frazil {

// Returns what `parse` reads from a text; none if it refuses.
template <class Parse>
auto read_or_refuse(std::string_view text, const Parse& parse)
    -> std::optional<decltype(parse(text, std::string(kFuzzedFile)))> {
  const std::string file = kFuzzedFile;
  try {
    return parse(text, file);
  } catch (const InputError& error) {
    require_sentence(error, text);
    return std::nullopt;
  }
}

template <class Parse, class Write>
void check_round_trip(std::string_view text, const Parse& parse, const Write& write) {
  const auto read = read_or_refuse(text, parse);
  if (!read) return;
  const std::string written = write(*read);
  const auto again = read_or_refuse(written, parse);
  require(again.has_value(), "what was read is written as something to read");
  require(*again == *read, "what was read is read again as the same");
  require(write(*again) == written, "equal content is written as equal bytes");
}

}  // namespace frazil
