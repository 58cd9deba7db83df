#pragma once
// The folder of a training run: what `frazil report` reads.

#include <filesystem>

#include "exec/train/train_result.h"

namespace frazil {

// A phase of a run that lasts: what a killed one leaves, beside events.jsonl. What was there under
// this number goes first, trace.jsonl, which is that of a run that has ended, and what a killed
// process had half written. Throws InputError.
void write_phase(const TrainPhase& phase, std::size_t number, const std::filesystem::path& folder);

// Beside events.jsonl, which is written while the run lasts (exec/train/event_log.h):
// trace.jsonl and phase-<i>/{plan.json,predicted.csv,measured.csv,memory.json,trace.json} under
// `folder`, phases before the process's first one left as they are. All are whole beside their
// places before the first takes its own; then the files of these names that an earlier run has left
// and this one does not write go, and folders of phases that are empty without them. Throws
// InputError; before the first file has taken its place every earlier file is as it was (folders
// made for new ones stay), and only where a rename or a removal itself fails, what was done before
// it stays.
void write_result(const TrainResult& result, const std::filesystem::path& folder);

}  // namespace frazil
