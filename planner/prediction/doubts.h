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

// Returns a JSON object, to be made part of a larger answer: `doubts`, a list of `fact`, `kind` and
// `reason`, and `fits_if`, a text; empty without doubts, and without `fits_if` if none is about
// memory.
std::string doubts_json(const ModelProfile& profile);

}  // namespace frazil
