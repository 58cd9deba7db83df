// The part of the executor (exec/run/executor.h) that ends a step: the barrier, at which the device
// votes, the updates of the weights, and those of the layers' statistics.
#include "exec/run/executor.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>

#include "exec/reduction/clip.h"
#include "exec/run/gradient_signals.h"

namespace frazil {

// Norms and votes go through the host.
void Executor::pass_barrier() {
  catch_up();
  share_statistics();
  if (optimizer_.clip_norm > 0) {
    clip_scale_ = find_clip_scale(gradients_.complete(), program_, device_, communicator_,
                                  input_.step, optimizer_.clip_norm);
  }
  vote();
}

void Executor::vote() {
  if (commit_ == nullptr || std::exchange(has_voted_, true)) return;
  read_numbers();
  recorder_.compute().finish();
  commit_->vote(device_, input_.step, *limit_, encode(losses_));
}

// Before the vote: a device that has voted depends on no other one any more.
void Executor::share_statistics() {
  if (statistics_.has_peers()) catch_up();
  statistics_.share();
}

// A device may keep statistics and update no weights, so that its list has no barrier.
void Executor::end_statistics(bool is_in_update) {
  if (statistics_.layers().empty() || std::exchange(has_folded_, true)) return;
  share_statistics();
  vote();
  for (const LayerId layer : statistics_.layers()) {
    const SteadyTime start = recorder_.now();
    statistics_.fold(layer);
    if (measurement_.layers && is_in_update) {
      recorder_.add_layer(layer, LayerPhase::kStatistics, 0, start);
    }
  }
}

void Executor::update(const Action& action) {
  for_each_layer(program_.stage(action.pipeline, action.stage), [&](LayerId layer) {
    if (gradients_.has(layer)) update_weights(layer, gradients_.take(layer));
  });
  for (const WeightRead& read : reads_.end_group(action.stage)) recorder_.add_weight_read(read);
  if (is_last_update(action)) end_statistics(true);
}

// Where a device's list ends with a U, the running statistics are folded within it, as a profile
// has it. They are shared before, so that a device that waits for another one is not at work.
bool Executor::is_last_update(const Action& action) const {
  return action.kind == ActionKind::kUpdate &&
         &action == &program_.schedule.devices[device_.index()].back();
}

double Executor::rate_of(LayerId layer) const {
  if (input_.rate_factors.empty()) return input_.learning_rate;
  return input_.learning_rate * input_.rate_factors[model_.layers[layer.index()].block.index()];
}

std::vector<bool> Executor::find_moved(LayerId layer, const Tensors& parameters) const {
  const LayerSpec& spec = model_.layers[layer.index()];
  if (!spec.moved) return {};
  return spec
      .moved(layer, parameters, {.seed = input_.seed, .step = input_.step, .micro_batch = {}})
      .parameters;
}

void Executor::update_weights(LayerId layer, Tensors gradients) {
  const SteadyTime start = recorder_.now();
  for (at::Tensor& gradient : gradients) gradient = gradient.contiguous();
  LayerState& state = state_.at(layer);
  kept_.keep(layer, state);
  const bool counts = recorder_.memory().is_open();
  const Bytes before = counts ? bytes_of_moments(state) : Bytes{};
  watch_.look(layer, gradients, unread());
  if (measurement_.gradient_sums) add_to_sums(state, gradients);
  if (measurement_.gradient_squares &&
      program_.topology.owners[layer.index()].front().device == device_) {
    note_squares(layer, gradients);
  }
  if (clip_scale_ != 1) {
    for (at::Tensor& gradient : gradients) gradient = at::mul(gradient, clip_scale_);
  }
  const auto rules = rules_.find(layer);
  update_layer(state, gradients, optimizer_, rate_of(layer),
               rules == rules_.end() ? std::vector<ParameterRule>{} : rules->second,
               find_moved(layer, state.parameters));
  if (input_.updates != nullptr) ++(*input_.updates)[layer];
  const Bytes after = counts ? bytes_of_moments(state) : Bytes{};
  recorder_.memory().change(MemoryKind::kOptimizer, (after - before).count);
  if (measurement_.layers) recorder_.add_layer(layer, LayerPhase::kUpdate, 0, start);
}

// Where the host runs ahead, the squares of each parameter come as a number of their own; they are
// added in the same order.
void Executor::note_squares(LayerId layer, const Tensors& gradients) {
  if (unread() == nullptr) {
    recorder_.add_gradient_squares({layer, sum_squares(gradients)});
    return;
  }
  const auto sum = std::make_shared<double>(0);
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    const bool is_last = p + 1 == gradients.size();
    unread_.add(sum_of_squares(gradients[p]), [this, layer, sum, is_last](double squares) {
      *sum += squares;
      if (is_last) recorder_.add_gradient_squares({layer, *sum});
    });
  }
}

}  // namespace frazil
