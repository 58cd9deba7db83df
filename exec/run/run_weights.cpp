// The part of Run (exec/run/run.h) that asks all processes about weights between two steps:
// evaluation, signals, states, hashes.
#include "exec/run/run.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>

namespace frazil {

Run::Evaluation Run::evaluate(const SampleSource& samples, int micro_batch_size, SamplePart part) {
  std::vector<LossTerm> losses;
  std::int64_t right = 0;
  std::int64_t judged = 0;
  for (const EvaluationAnswer& answer :
       ask<EvaluationAnswer>(EvaluateJob{part, micro_batch_size},
                             [&] { return pool_.evaluate(samples, micro_batch_size); })) {
    losses.insert(losses.end(), answer.losses.begin(), answer.losses.end());
    right += answer.right;
    judged += answer.judged;
  }
  std::sort(losses.begin(), losses.end());
  Evaluation evaluation;
  std::map<LayerId, LossTerm> sums;
  for (const LossTerm& term : losses) {
    sums[term.layer].value += term.value;
    sums[term.layer].count += term.count;
  }
  for (const auto& [layer, sum] : sums) {
    if (sum.count > 0) evaluation.loss += sum.value / static_cast<double>(sum.count);
  }
  if (judged > 0) evaluation.accuracy = static_cast<double>(right) / static_cast<double>(judged);
  return evaluation;
}

std::vector<std::vector<double>> Run::sketch_blocks(const Samples& probe) {
  std::vector<std::vector<double>> sketches(model().blocks.size());
  for (BlockNumbers& found : joined(ask<std::vector<BlockNumbers>>(
           SketchJob{}, [&] { return pool_.sketch_blocks(probe); }))) {
    sketches.at(found.block.index()) = std::move(found.values);
  }
  return sketches;
}

std::vector<double> Run::interval_gradients() {
  std::vector<BlockNumbers> found = joined(ask<std::vector<BlockNumbers>>(
      IntervalGradientsJob{}, [this] { return pool_.interval_gradients(); }));
  std::sort(found.begin(), found.end(),
            [](const BlockNumbers& a, const BlockNumbers& b) { return a.layer < b.layer; });
  std::vector<double> norms(model().blocks.size());
  for (const BlockNumbers& numbers : found) {
    for (const double norm : numbers.values) norms.at(numbers.block.index()) += norm;
  }
  return norms;
}

void Run::clear_gradient_sums() {
  ask_done(ClearSumsJob{}, [this] { pool_.clear_gradient_sums(); });
}

std::optional<LayerId> Run::find_non_finite() {
  std::optional<LayerId> first;
  for (const std::optional<LayerId>& layer :
       ask<std::optional<LayerId>>(NonFiniteJob{}, [this] { return pool_.find_non_finite(); })) {
    if (layer) first = std::min(*layer, first.value_or(*layer));
  }
  return first;
}

std::vector<LayerState> Run::gather_states() {
  std::vector<LayerState> states;
  ask_done(GatherJob{}, [&] { states = pool_.gather_states(); });
  return states;
}

std::uint64_t Run::weight_hash() {
  return combine_hashes(hash_by_layer(
      joined(ask<std::vector<LayerDigest>>(DigestsJob{}, [this] { return pool_.digests(); })),
      model().layers.size()));
}

}  // namespace frazil
