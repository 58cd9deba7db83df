#include "profiles/import/imported_profile.h"

#include <fmt/format.h>

#include "profiles/quantity_text.h"
#include "profiles/split_backward.h"

namespace frazil {

void split_by_rule(ImportedProfile& imported) {
  const MovedBackward result = split_whole_backwards(imported.profile);
  imported.notes.emplace_back("the backward is one number: I and W by rule");
  if (result.moved > Duration{0}) {
    imported.notes.push_back(fmt::format(
        "{} of backward were measured at layers that compute no gradient; they count at "
        "the nearest layers that do",
        to_text(result.moved)));
  }
  if (result.lost > Duration{0}) {
    imported.notes.push_back(fmt::format(
        "no layer has parameters that a loss reaches: nothing trains, and {} of backward count "
        "nowhere",
        to_text(result.lost)));
  }
}

}  // namespace frazil
