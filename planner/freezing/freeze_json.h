#pragma once
// clang-format off
// Reads and writes a freeze configuration and the state of a freeze authority as JSON. The
// configuration is an object in the configuration file of a run. Every key but "policy" and "kind"
// has the default of planner/freezing/freeze_policy.h or decorators.h:
//   {"policy": {"kind": "pt-paper", "alpha": 0.33, "start_epoch": 1, "interval_epochs": 1},
//    "decorators": {"hysteresis": {"steps": 50}, "prefix": true,
//                   "validation_guard": {"metric": "accuracy", "sigmas": 3, "tolerance": 0.005,
//                                        "smoothing": 0.2, "hold_evaluations": 2,
//                                        "wait_while_improving": false},
//                   "minimum_interval": {"epochs": 1},
//                   "amortisation": {"margin_percent": 100, "within_epochs": 5}},
//    "freeze_untrainable": false}
// A pace is "start_epoch" (from 1) and "interval_epochs", or "start_step" (from 0) and
// "interval_steps"; a length is "steps" or "epochs". Keys by kind:
//   none        -                                    static     frozen_layers or mask
//   alpha       alpha, pace                          pt-paper   alpha, pace
//   autofreeze  percentile, pace                     linear     freeze_start, freeze_level,
//   freezeout   t0, power, scaled                               interval_epochs or _steps
//   plasticity  tolerance, patience, smoothing, per_rate, thaw_at_rate, pace
//   gradual-unfreeze  blocks_per_interval, pace      random     active_layers, embedding_active,
//   trace       path, rescale                                   pace
// All readers throw InputError with the file, line and path, what was found, and what was expected.
// clang-format on

#include <filesystem>
#include <string>

#include "planner/freezing/freeze_authority.h"
#include "profiles/json.h"

namespace frazil {

// Reads the configuration for a model with `blocks` blocks. Also reads the freeze trace that it
// names, by a path relative to `folder`.
FreezeConfig parse_freeze_config(const JsonCursor& object, int blocks,
                                 const std::filesystem::path& folder);
// Writes one line with all keys; a trace is written as its path alone. Round trips.
std::string to_json(const FreezeConfig& config);

// Writes a policy alone: {"kind": "freezeout", ...}. A freeze trace of a run whose blocks had
// learning rates of their own holds this text under "rates" in its provenance.
std::string to_json(const FreezePolicy& policy);

// Reads "format": "frazil.freeze_state", "version": 1. Throws InputError for the state of another
// policy or model.
FreezeState parse_freeze_state(const JsonCursor& object, const FreezeConfig& config, int blocks);
// Writes one line that round trips.
std::string to_json(const FreezeState& state, const FreezeConfig& config);

}  // namespace frazil
