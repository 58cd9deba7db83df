#pragma once
// Makes the run configuration of an arm from the user's own: the same model, data, optimizer and
// batch, with the arm's seed, epochs, freezing and cache. `frazil train` checks what it is made of.
// Here only what an ablation needs to know is read.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "analysis/ablation/arm.h"
#include "planner/bounds/search_options.h"
#include "planner/transitions/feature_store.h"
#include "profiles/model_profile.h"

namespace frazil {

struct BaseRun {
  std::filesystem::path file;
  std::string written;  // as it stands in the file
  std::string text;     // the JSON with its keys in order; equal configurations give equal texts
  std::string hash;     // of that text and of all files that it names, by what they hold
  int epochs = 0;
  int batch_size = 0;
  int micro_batch_size = 0;
  ReductionMode reduction = ReductionMode::kExact;
  bool clips = false;    // by the global gradient norm
  bool freezes = false;  // has a freezing of its own
  // Where arms that cache do so: as the run's cache says, or with its defaults. How many samples
  // there are is not known.
  FeatureStore store = {};
};

// Reads the user's configuration. Throws InputError for what is no JSON object, and for keys read
// here that have no good value.
BaseRun read_base_run(const std::filesystem::path& file);

// The control `shorter` trains so many of the steps of the whole run.
struct ShorterRun {
  Step steps = 1;
  Step of_steps = 1;
};
// Returns the steps whose time without freezing is nearest to that of `all`, at least 1 and at most
// all. Requires: steps >= 1, times > 0.
ShorterRun shorten(Step steps, Duration time_unfrozen, Duration time_of_all);

// What a run of an arm has besides the arm's row.
struct ArmRun {
  Arm arm = Arm::kUnfrozen;
  std::int64_t seed = 1;
  std::filesystem::path masks = {};  // of the arms whose masks are derived: their freeze trace
  std::optional<ShorterRun> shorter = std::nullopt;  // of that arm
};

// Returns the text of the run configuration. Names of files that the user gave relative to their
// configuration are absolute in it, so that it may lie anywhere. The warm-up of a shorter run is
// the same share of it as of the whole one.
std::string configure(const BaseRun& base, const ArmRun& run);

// Returns the profile by which plans for these masks are made: where the run's policy decides, with
// the memory that its signals take, as `frazil train` counts it. Throws InputError for a policy
// that cannot be read.
ModelProfile profile_for(const BaseRun& base, ArmFacts::Masks masks, const ModelProfile& profile);

// Returns what the planner is asked for the first plan of a run: what `frazil train` asks.
SearchOptions question_of(const BaseRun& base, const ModelProfile& profile);

}  // namespace frazil
