#pragma once
// The answers of `frazil train`, for people and as JSON, once a run has ended, been stopped or
// diverged.

#include <filesystem>
#include <optional>
#include <string>

#include "exec/train/train_result.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

// Returns the answer of a run that has ended: a table of its phases and what was learnt, with what
// the predictions rest on that was not measured, the commit rounds of a run over processes among
// it.
std::string print_result(const TrainResult& result, const ModelProfile& profile,
                         const Cluster& cluster);
std::string to_json(const TrainResult& result, const Cluster& cluster);

// What a run leaves behind that a signal has ended.
struct KeptOfRun {
  std::filesystem::path folder;  // of --out; empty: nothing is kept
  bool has_checkpoints = false;  // the last one is of the step at which the run was stopped
  bool has_weights = false;
};
// Returns "stopped by signal 2 after 21 of 60 steps; kept: ...".
std::string tell_stopped(const TrainResult& result, const KeptOfRun& kept, int signal);
std::string stopped_json(const TrainResult& result);

// Returns "; kept: the checkpoint of step 20 in out/checkpoints" for a run that has diverged, which
// keeps nothing of what is not finite.
std::string tell_kept_of_diverged(const std::filesystem::path& folder);

}  // namespace frazil
