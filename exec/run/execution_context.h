#pragma once
// These structs hold what the executor of one device works with, each part with its lifetime. All
// parts outlive the executor.

#include "exec/communication/communicator.h"
#include "exec/control/commit_round.h"
#include "exec/measuring/recorder.h"
#include "exec/models/model.h"
#include "exec/program/step_program.h"
#include "exec/state/layer_state.h"
#include "exec/state/optimizer.h"
#include "planner/plan/activity.h"

namespace frazil {

// The parts that the layers of a stage run with.
struct StageContext {
  const ModelSpec& model;          // the run's, as long as the run
  const Activity& activity;        // the program's, as long as its plan is held
  DeviceState& state;              // the device's, as long as the run; transitions move its layers
  Recorder& recorder;              // the device's, as long as the run
  const Measurement& measurement;  // the run's; changes between steps alone
};

struct ExecutionContext {
  const ModelSpec& model;            // the run's, as long as the run
  const OptimizerConfig& optimizer;  // the run's, as long as the run
  const StepProgram& program;        // as long as its plan is held
  DeviceId device;
  DeviceState& state;              // the device's, as long as the run; transitions move its layers
  Communicator& communicator;      // the device's, as long as the run
  Recorder& recorder;              // the device's, as long as the run
  const Measurement& measurement;  // the run's; changes between steps alone
  // The world's, as long as the communicator; none: updates need no commit.
  CommitRound* commit = nullptr;
  const WaitLimit* limit = nullptr;  // of the wait for a commit

  StageContext stage() const { return {model, program.activity, state, recorder, measurement}; }
};

}  // namespace frazil
