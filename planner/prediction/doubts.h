#pragma once
// What answers about plans say of numbers in the profile that were not measured: a note for each
// doubt, and under which condition a plan that fits really fits.

#include <string>

#include "profiles/model_profile.h"

namespace frazil {

// Returns a line for each doubt of the profile: "note: saved activations are a lower bound: each
// layer's input alone".
std::string list_doubts(const ModelProfile& profile);

// Returns "fits if saved activations take no more than the profile says", a line, for `verb`
// "fits"; nothing if no number about memory is in doubt.
std::string fits_if(const ModelProfile& profile, const std::string& verb);

// True if bytes of memory in the profile are placeholders, so that a sum of them may be far below
// the truth.
bool is_memory_unknown(const ModelProfile& profile);

// Returns the memory that a device holds, ">= 66 B" where bytes of the profile are placeholders.
std::string memory_text(const ModelProfile& profile, Bytes bytes);

// Returns a JSON object, to be made part of a larger answer: `doubts`, a list of `fact`, `kind` and
// `reason`, and `fits_if`, a text; empty without doubts, and without `fits_if` if none is about
// memory.
std::string doubts_json(const ModelProfile& profile);

}  // namespace frazil
