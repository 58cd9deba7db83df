#pragma once
// Sums up an ablation: a row for each arm with its speed over `unfrozen`, its accuracy, the
// difference to `unfrozen` and what that allows to say, beside what was predicted.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/pair_result.h"
#include "analysis/ablation/predict/predict_run.h"
#include "analysis/ablation/predicted_order.h"
#include "analysis/ablation/run_ablation.h"
#include "analysis/ablation/verdict.h"

namespace frazil {

struct ArmRow {
  Arm arm = Arm::kUnfrozen;
  std::string unfit = {};  // why it could not run; the rest is then empty
  std::vector<std::int64_t> seeds;
  double wall_seconds = 0;     // means over the seeds
  double device_seconds = 0;   // of the devices that plans use
  double cluster_seconds = 0;  // of all devices of the cluster
  double accuracy_percent = 0;
  double epochs = 0;
  double transitions = 0;
  double transition_seconds = 0;
  std::optional<double> more_time_percent;  // of `shorter`, than `all` took; mean over seeds
  // Against `unfrozen`, over the seeds that both have; none for that arm itself, and without such
  // seeds. Speed: wall time of `unfrozen` / that of the arm.
  std::optional<RatioEstimate> speed;
  std::optional<RatioEstimate> device_saving;  // the same of device seconds
  std::optional<MeanEstimate> difference;      // points of accuracy
  NonInferiority verdict = NonInferiority::kNoVerdict;
  // Of `all`, whose time `shorter` has: accuracy less that of `shorter`, and whether that is above
  // zero; none without `shorter`.
  std::optional<MeanEstimate> over_shorter;
  std::optional<bool> beats_shorter;
  // True if all runs of the arm ended with the weights of `all` under the same seed, bit for bit.
  bool has_weights_of_all = false;
  // Seeds of the runs beside which other programs kept more than kMostForeignCoresOfPair busy.
  std::vector<std::int64_t> disturbed;
  // The last two are not said of `shorter`, whose length follows from the measured time of `all`.
  std::optional<PredictedRun> predicted;
  std::optional<double> predicted_speed;           // over the prediction of `unfrozen`
  std::optional<double> prediction_error_percent;  // 100 (predicted - measured) / measured time

  bool has_run() const { return !seeds.empty(); }
};

struct Ablation {
  double margin_points = 1;
  std::vector<std::int64_t> seeds;
  std::optional<SeedCount> asked_seeds;  // by a pilot
  std::vector<ArmRow> rows;              // in the order of all_arms()
  // Standard error in points of the accuracy of `unfrozen` for the size of the test part.
  std::optional<double> test_error_points;
  std::int64_t test_samples = 0;
  std::optional<FreezingGain> gain;  // none without verdicts on `all` and `shorter`
  PredictedOrder order;              // of the arms by their times
  std::optional<ComputeLimit> limit;
  std::string other_masks = {};     // AblationRuns::other_masks
  bool samples_were_told = false;   // so that predictions by the configuration were made beforehand
  std::vector<PairResult> results;  // in the order of seeds, then arms
};

// Returns the results of an arm in the order in which they stand.
std::vector<const PairResult*> results_of(const std::vector<PairResult>& results, Arm arm);

// Requires: margin > 0.
Ablation sum_up(const AblationRequest& request, AblationRuns runs, double margin_points,
                std::optional<SeedCount> asked_seeds);

// Returns "1 point", "0.5 points".
std::string tell_points(double points);

}  // namespace frazil
