#pragma once
// DriftControl watches what the devices and layers of a run take (planner/drift/drift_detector.h)
// and, where that has drifted, has the planner choose again with the measured costs: between two
// steps, and through the transition that a freeze takes. Weights have the same bits whether it is
// there or not.
// - The time of devices is known of every step, that of layers is measured in every second one.
// - The first windows of a plan are its baseline, and so are those after the cache of its frozen
//   prefix has filled, since steps that fill take longer.
// - From a drift on, profile and cluster of the run have the measured costs, also if no plan pays:
//   later plans, and what is predicted of them, are by these. Steps to come are counted to the next
//   mask where masks are known, else to the end.
// - Nothing is watched in a run over processes, in one that keeps its plan, and of one device.
// - Checkpoints keep what was found. A run that goes on from one prices by it, holds the plan that
//   it held, and begins a new baseline.

#include <optional>
#include <string>
#include <vector>

#include "exec/devices/foreign_load.h"
#include "exec/run/run.h"
#include "exec/train/loop/phase_changes.h"
#include "exec/train/loop/training_parts.h"
#include "exec/train/processes/process_changes.h"
#include "planner/drift/drift_decision.h"
#include "planner/drift/drift_detector.h"
#include "planner/freezing/freeze_authority.h"
#include "profiles/cost_scales.h"

namespace frazil {

class DriftControl {
 public:
  // `options` are those of the parts. The references must outlive this object.
  DriftControl(TrainOptions& options, TrainingParts& parts, ProcessChanges& changes,
               PhaseChanges& phases);

  // Goes on with the costs that a checkpoint has brought (TrainingParts::costs), if the run watches
  // its costs and has the profile and the cluster that these are beside; else forgets them, and
  // tells of it. Must be called before the first plan is in force.
  void restore();
  // Adds to `measurement` what a step is to measure.
  void ask(Step step, Measurement& measurement) const;
  // Is told of a step that is done; `is_full`: with a whole batch.
  void add_step(Step step, bool is_full, const StepResult& result);
  // Returns how much of the run could be read; none: nothing is watched.
  std::optional<DriftWatch> watch() const;
  // Decides on the drift that the last step has brought to light, if it has, before this step. Must
  // be called after the masks and plans of the step are in force.
  void follow(Step step);

 private:
  // What a baseline holds for.
  struct Watched {
    std::size_t phase = 0;
    bool has_filled = false;  // the cache of the plan, if it has one
    friend bool operator==(const Watched&, const Watched&) = default;
  };
  bool is_due(Step step) const { return step % 2 == 1; }
  void set_scales(CostScales scales);
  StepCosts take_costs(Step step, const StepResult& result);
  std::optional<double> foreign_cores(std::chrono::milliseconds age);
  Step count_steps_to_come(Step step) const;
  DriftDecision decide(Step step, const FreezeMask& mask, const CostScales& least);
  DriftEvent describe(const DriftDecision& decision, Step step) const;

  TrainOptions& options_;
  TrainingParts& parts_;
  ProcessChanges& changes_;
  PhaseChanges& phases_;
  bool is_on_;
  bool measures_layers_;
  std::optional<std::vector<TracedMask>> masks_;  // where known ahead
  ModelProfile profile_;                          // as it was given
  Cluster cluster_;
  CostScales scales_;
  DriftDetector detector_;
  StepCosts predicted_;
  std::optional<Watched> watched_;
  Step first_ = 0;              // whose costs count
  std::optional<Drift> drift_;  // not yet decided on
  RecentLoad load_;
};

}  // namespace frazil
