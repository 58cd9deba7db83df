#pragma once
// The result of one run of an ablation, an arm under a seed, and its file. The file says what it
// depends on: an ablation goes on in its folder only with the same run configuration, profile and
// cluster, on the same devices.
// clang-format off
//   {"format": "frazil.ablation_result", "version": 1, "arm": "all", "seed": 1,
//    "run_hash": "..", "profile_hash": "..", "cluster_hash": "..",
//    "processes"?: 2, "device"?: "cuda", "gpus"?: "0,1", "frazil_version"?: "0.9.0",
//    "wall_time_ns": 0, "device_time_ns": 0, "cluster_time_ns": 0, "process_time_ns": 0,
//    "accuracy": 0.5, "loss": 0.5, "test_samples": 360, "steps": 900, "epochs": 20,
//    "state_hash": "..", "foreign_cores"?: 0.01, "transitions": 2, "transition_time_ns": 0,
//    "overhead_plan_ns": 0, "overhead_start_ns": 0, "cached": 0, "made_from"?: "..",
//    "phases": [{"first_step": 0, "mask": "1111", "plan": "..", "stages": 2, "pipelines": 1,
//                "devices": 2, "steps": 10, "wall_time_ns": 0}],
//    "curve": [{"epoch": 1, "wall_time_ns": 0, "device_time_ns": 0, "accuracy": 0.5}]}
// clang-format on

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/arm.h"
#include "analysis/ablation/pair_order.h"
#include "planner/transitions/transition_cost.h"
#include "profiles/units.h"

namespace frazil {

// What all results of an ablation rest on: texts, by their XXH64, and where `frazil train` has the
// devices of the cluster, in the words of its flags --procs, --device and --gpus.
struct AblationInputs {
  std::string run_hash;
  std::string profile_hash;
  std::string cluster_hash;
  int processes = 1;
  std::string device = "cpu";
  std::string gpus = "";  // a comma list; empty: all that there are, or none
  friend bool operator==(const AblationInputs&, const AblationInputs&) = default;
};
std::string hash_of(std::string_view text);  // 16 hexadecimal digits

// A span of steps under one plan.
struct PairPhase {
  Step first_step = 0;
  std::string mask;
  std::string plan;  // in one line
  int stages = 1;
  int pipelines = 1;
  int devices = 1;  // that the plan uses
  std::int64_t steps = 0;
  Duration wall{0};
  friend bool operator==(const PairPhase&, const PairPhase&) = default;
};

// The accuracy at the end of an epoch. The times are sums of steps and transitions before it, a
// little less than wall time.
struct PairPoint {
  int epoch = 1;
  Duration wall{0};
  Duration device{0};
  double accuracy = 0;  // 0..1
  friend bool operator==(const PairPoint&, const PairPoint&) = default;
};

struct PairResult {
  ArmSeed pair;
  AblationInputs inputs;
  std::string frazil_version = {};  // of the programs that made it; empty: older than this key
  // From the first step to the last with transitions, filling the cache, decisions, asking the
  // planner, and validation where a decision reads it; not with the evaluation of test samples.
  Duration wall{0};
  Duration device{0};   // sum over phases of wall time x devices that the plan uses
  Duration cluster{0};  // wall time x all devices of the cluster
  Duration process{0};  // of the whole program, evaluation and start included
  double accuracy = 0;  // of the test samples, 0..1
  double loss = 0;
  std::int64_t test_samples = 1;
  Step steps = 1;     // of the whole run
  double epochs = 1;  // the same in epochs, of which arm `shorter` has no whole number
  std::string state_hash;
  std::optional<double> foreign_cores = std::nullopt;  // that other programs kept busy, where known
  int transitions = 0;                                 // from plan to plan
  Duration transition_time{0};                         // of these, waiting for the planner included
  std::int64_t cached = 0;                             // features of samples that were stored
  // What the run predicts a transition to cost besides moving state, from its own measurement.
  TransitionOverhead overhead = {};
  std::string made_from = {};  // of controls alone: find_origin() when they were made
  std::vector<PairPhase> phases;
  std::vector<PairPoint> curve;  // by epoch
  friend bool operator==(const PairResult&, const PairResult&) = default;
};

// Other programs that keep more cores busy than this mark a pair.
inline constexpr double kMostForeignCoresOfPair = 0.05;
bool is_disturbed(const PairResult& result);

std::string to_json(const PairResult& result);
// Throws InputError.
PairResult parse_pair_result(std::string_view text, const std::string& file);
void write_pair_result(const PairResult& result, const std::filesystem::path& file);
// Returns the result in the file; none if there is no such file. Throws InputError for a file that
// is damaged or whose parts do not go together, and for the result of another pair or of other
// inputs.
std::optional<PairResult> find_pair_result(const std::filesystem::path& file, const ArmSeed& pair,
                                           const AblationInputs& inputs);

}  // namespace frazil
