#include "exec/run/freeze_signals.h"

#include <ATen/ATen.h>

#include <cmath>

#include "exec/models/untrainable_blocks.h"
#include "planner/freezing/plasticity.h"
#include "planner/freezing/signals.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Returns all floating-point outputs of a layer, sample by sample.
std::vector<double> as_doubles(const Tensors& outputs, std::int64_t samples) {
  Tensors rows;
  for (const at::Tensor& output : outputs) {
    if (output.is_floating_point()) rows.push_back(output.to(at::kDouble).reshape({samples, -1}));
  }
  ENSURE(!rows.empty(), "a block puts out real numbers");
  const at::Tensor table = at::cat(rows, 1).contiguous();
  const auto* first = table.const_data_ptr<double>();
  return {first, first + table.numel()};
}

}  // namespace

std::vector<double> gradient_norms(const ModelSpec& model, const std::vector<double>& squares) {
  ENSURE(squares.size() == model.layers.size(), "a sum for each layer");
  std::vector<double> norms(model.blocks.size());
  for (std::size_t l = 0; l < squares.size(); ++l) {
    norms.at(model.layers[l].block.index()) += squares[l];
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  for (const BlockId block : find_untrainable_blocks(model)) norms[block.index()] = kLargestReading;
  return norms;
}

std::vector<double> sketch_outputs(const Tensors& outputs, std::int64_t samples) {
  return make_sketch(as_doubles(outputs, samples), static_cast<std::size_t>(samples));
}

std::vector<double> compare_sketches(const Sketches& now, const Sketches& then) {
  ENSURE(now.size() == then.size(), "sketches of the same blocks");
  std::vector<double> changes;
  changes.reserve(now.size());
  for (std::size_t b = 0; b < now.size(); ++b) changes.push_back(plasticity(now[b], then[b]));
  return changes;
}

std::map<std::string, double> list_signals(const FreezeSignals& signals) {
  std::map<std::string, double> named;
  const auto add = [&](Signal signal, const std::vector<double>& values) {
    for (std::size_t b = 0; b < values.size(); ++b) {
      if (!std::isfinite(values[b]) || values[b] == kLargestReading) continue;
      named[std::string(name_of(signal)) + "." + std::to_string(b)] = values[b];
    }
  };
  add(Signal::kGradientNorms, signals.gradient_norms);
  add(Signal::kIntervalGradients, signals.interval_gradients);
  add(Signal::kPlasticity, signals.plasticity);
  if (signals.learning_rate && !named.empty()) {
    named[std::string(name_of(Signal::kLearningRate))] = *signals.learning_rate;
  }
  return named;
}

}  // namespace frazil
