#pragma once
// The folder of one phase of a run. It is written beside its place and then swapped into it, so
// that whoever looks, or comes after a process that was killed, finds all files of a phase or none.

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "profiles/text_file.h"

namespace frazil {

// The names that a phase may have in its folder. A trace or memory may be missing.
inline constexpr std::array kPhaseFiles{"plan.json", "predicted.csv", "measured.csv", "memory.json",
                                        "trace.json"};

// Returns <run>/phase-<number>.
std::filesystem::path phase_folder(const std::filesystem::path& run, std::size_t number);

// The files of a phase that are whole in the folder .tmp-phase-<number> of the run.
class StagedPhase {
 public:
  // Writes the files, whose paths are names alone. Throws InputError if they cannot be written, or
  // if their place is taken by what is no folder; then nothing is left of them.
  StagedPhase(std::vector<NewFile> files, const std::filesystem::path& run, std::size_t number);
  // Removes the files that are not in their place.
  ~StagedPhase();
  StagedPhase(const StagedPhase&) = delete;
  StagedPhase& operator=(const StagedPhase&) = delete;

  // Puts the files in their place, instead of all files of an earlier phase there. Other files in
  // that folder stay: if there are any, or the disk cannot swap folders, the files of the phase
  // take their places one by one, each instead of the one before. Throws InputError.
  void put();

 private:
  bool swap() const;
  void move_files() const;

  std::filesystem::path staged_;
  std::filesystem::path place_;
};

// Returns whether a file of a phase has this name, or a half-written one (profiles/text_file.h).
bool is_phase_file(const std::string& name);

// Removes what a killed process has staged. Throws InputError.
void remove_staged_phases(const std::filesystem::path& run);

}  // namespace frazil
