#pragma once
// These functions write the folder of a training run, which `frazil report` reads, and remove what
// an earlier run has left there.

#include <filesystem>
#include <vector>

#include "exec/train/train_result.h"

namespace frazil {

// Writes a phase of a run that is under way: a killed run leaves these files beside events.jsonl.
// At any moment the phase of this number is the one before or the new one, with all its files
// (exec/train/phase_folder.h). Removes trace.jsonl, which belongs to a run that has ended, and
// files that a killed process had half written. Throws InputError; then the phase is the one
// before.
void write_phase(const TrainPhase& phase, std::size_t number, const std::filesystem::path& folder);

// Writes trace.jsonl and phase-<i>/{plan.json,predicted.csv,measured.csv,memory.json,trace.json}
// under `folder`, beside events.jsonl, which is written while the run lasts
// (exec/train/event_log.h). Phases before the process's first one are left as they are. Folders of
// phases that are not there yet come whole; then all other files are whole beside their places
// before the first takes its own place, and trace.jsonl takes its place last. Then files of these
// names that an earlier run has left and this one does not write are removed, and folders of phases
// that are empty without them.
// Throws InputError. Before the first file has taken its place, every earlier file is as it was. If
// a rename or a removal itself fails, what was done before it stays.
void write_result(const TrainResult& result, const std::filesystem::path& folder);

// Removes what a killed process has half written in the folder. Throws InputError.
void remove_half_written(const std::filesystem::path& folder);

// Returns the places of the files that a run may leave in `folder`, there or not, except those of
// its checkpoints: weights, logs, inputs, and those of each phase that has a folder.
std::vector<std::filesystem::path> list_run_files(const std::filesystem::path& folder);
// Removes these files, those that a run writes in the folder of its checkpoints and what a killed
// process has half written, and the folders that are empty without them. Throws InputError.
void remove_run(const std::filesystem::path& folder);

}  // namespace frazil
