#pragma once
// Plans whose stages share every micro-batch by samples, what training under them gives, and how
// near it is to what another plan gives.

#include <string>
#include <vector>

#include "exec/run/run.h"
#include "exec/state/layer_state.h"
#include "tests/exec/models/test_models.h"

namespace frazil {

inline constexpr int kSlicedSamples = 4;  // in a micro-batch
inline constexpr double kSlicedRate = 1e-2;

// A small vision transformer with dropout.
TestModel vit_model();

struct SlicedForm {
  std::vector<std::vector<int>> devices;  // by stage; sliced where they are several
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  int micro_batches = 3;
  std::string mask = {};  // empty: the model's own
  bool recompute = false;
  MessageOrder order = MessageOrder::kByTag;

  int all_devices() const;
};
std::string name_of(const SlicedForm& form);
Plan make_sliced_plan(const TestModel& model, const SlicedForm& form);

// Distributions of 1 to 3 stages over up to 4 devices.
const std::vector<std::vector<std::vector<int>>>& sliced_distributions();
// Returns whether no device lies in two stages; gpipe alone takes stages that do not lie apart.
bool lie_apart(const std::vector<std::vector<int>>& devices);

// SGD with momentum and without decay: its momentum after one step is the gradient.
OptimizerConfig undecayed_sgd(double clip_norm);

struct SlicedOutcome {
  std::vector<LayerState> layers;
  std::vector<double> losses;  // by step
};
// The third step lacks a sample, so that some slices have one fewer.
SlicedOutcome train_sliced(const TestModel& model, const OptimizerConfig& optimizer,
                           const SlicedForm& form, int steps = 3);
// Copies the states of the layers' first holders; all other holders must have the same bits.
std::vector<LayerState> copy_states(frazil::Run& run, const TestModel& model);

double largest_element(const at::Tensor& tensor);  // absolute element
// Compares parameters, momenta and losses: the largest difference of an element over the largest
// element, by layer. (Not by tensor: a bias before a norm has a gradient of terms that cancel, and
// the rounding of a sum is that of its terms.)
void expect_same_training(const SlicedOutcome& found, const SlicedOutcome& expected,
                          double tolerance);

}  // namespace frazil
