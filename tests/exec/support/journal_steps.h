#pragma once
// Reads the records of steps out of the bytes of a step journal, for comparing runs that kept
// checkpoints at different steps.

#include <string>
#include <vector>

namespace frazil {

// Returns what the whole lines of steps say, without the hashes of lines. Lines of other kinds have
// a word in place of the loss.
inline std::vector<std::string> list_steps(const std::string& journal) {
  std::vector<std::string> steps;
  for (std::size_t place = 64; place + 64 <= journal.size(); place += 64) {
    const std::string line = journal.substr(place, 47);
    const std::string loss = line.substr(13, 16);
    if (loss.find_first_not_of("0123456789abcdef") == std::string::npos) steps.push_back(line);
  }
  return steps;
}

}  // namespace frazil
