#pragma once
// A freeze configuration and the state of an authority as JSON. The configuration is an object of a
// run's configuration file, every key but "policy" and "kind" with the default of freeze_policy.h
// or decorators.h:
//   {"policy": {"kind": "pt-paper", "alpha": 0.33, "start_epoch": 1, "interval_epochs": 1},
//    "decorators": {"hysteresis": {"steps": 50}, "prefix": true,
//                   "validation_guard": {"metric": "accuracy", "sigmas": 3, "tolerance": 0.005,
//                                        "smoothing": 0.2, "hold_evaluations": 2,
//                                        "wait_while_improving": false},
//                   "minimum_interval": {"epochs": 1},
//                   "amortisation": {"margin_percent": 100, "within_epochs": 5}}}
// A pace is "start_epoch" (from 1) and "interval_epochs", or "start_step" (from 0) and
// "interval_steps"; a length is "steps" or "epochs". Keys by kind:
//   none        -                                    static     frozen_layers or mask
//   alpha       alpha, pace                          pt-paper   alpha, pace
//   autofreeze  percentile, pace                     linear     freeze_start, freeze_level,
//   freezeout   t0, power, scaled                               interval_epochs or _steps
//   plasticity  tolerance, patience, smoothing, per_rate, thaw_at_rate, pace
//   gradual-unfreeze  blocks_per_interval, pace      random     active_layers, embedding_active,
//   trace       path, rescale                                   pace
// All readers throw InputError: file, line and path, what was found, what was expected.

#include <filesystem>
#include <string>

#include "planner/freezing/freeze_authority.h"
#include "profiles/json.h"

namespace frazil {

// Of a model with so many blocks. A trace is read, its path taken from `folder`.
FreezeConfig parse_freeze_config(const JsonCursor& object, int blocks,
                                 const std::filesystem::path& folder);
// On one line, all keys written; a trace by its path alone. Round trips.
std::string to_json(const FreezeConfig& config);

// A policy alone: {"kind": "freezeout", ...}. A freeze trace whose blocks had learning rates of
// their own says so under "rates" in its provenance.
std::string to_json(const FreezePolicy& policy);

// "format": "frazil.freeze_state", "version": 1. Refuses the state of another policy or model.
FreezeState parse_freeze_state(const JsonCursor& object, const FreezeConfig& config, int blocks);
std::string to_json(const FreezeState& state, const FreezeConfig& config);  // one line, round trips

}  // namespace frazil
