#pragma once
// Reads the folder of a run (docs/formats.md) by itself, and says whether journal, checkpoints,
// events and weights hold and agree. Changes nothing, needs no libtorch, and shares no code with
// what writes journals and checkpoints.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct RunCheck {
  // A part, such as "journal", and what it holds, such as "40 steps, weights of 3 checkpoints".
  std::vector<std::pair<std::string, std::string>> parts;
  Step steps = 0;                             // that journal, or else events, tell of
  std::map<Step, std::uint64_t> checkpoints;  // that hold: hash of the weights, by step
  std::vector<std::string> notes;             // sentences: worth a word, and no contradiction
  std::vector<std::string> problems;          // sentences that name a file
  bool agrees() const { return problems.empty(); }
};

// Throws InputError if the folder is none, or holds no run.
RunCheck check_run(const std::filesystem::path& folder);

}  // namespace frazil
