#pragma once
// Checks what a reader of layers makes of a text: a refusal is a sentence, and a profile that was
// read is written and read again as the same profile.

#include "profiles/import/imported_profile.h"
#include "profiles/model_profile_json.h"
#include "tests/fuzz/property.h"

namespace frazil {

template <class Parse>
void check_import(std::string_view text, Parse parse) {
  for (const int samples : {1, 3}) {
    ImportedProfile imported;
    try {
      imported =
          parse(text, kFuzzedFile, ImportOptions{.model = "fuzzed", .micro_batch_size = samples});
    } catch (const InputError& error) {
      require_sentence(error, text);
      return;
    }
    validate(imported.profile, kFuzzedFile);
    require(parse_model_profile(to_json(imported.profile), "again") == imported.profile,
            "a profile that was read is written as the same");
  }
}

}  // namespace frazil
