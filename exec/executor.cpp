#include "exec/executor.h"

#include <ATen/ATen.h>

#include <iterator>
#include <string>

#include "exec/clip.h"
#include "exec/gradient_reduction.h"
#include "exec/optimizer.h"
#include "profiles/error.h"

namespace frazil {
namespace {

[[noreturn]] void refuse(const Action& action) {
  throw InfeasibleError("the executor does not perform " + std::string(kind_name(action.kind)) +
                        " yet (" + to_text(action) + ")");
}

MicroBatchId micro_batch_of(const Action& action) {
  ENSURE(action.micro_batches.has_value(), "an action with a micro-batch");
  if (action.micro_batches->count() != 1 || action.slice) refuse(action);
  return action.micro_batches->first;
}

}  // namespace

Executor::Executor(const ModelSpec& model, const OptimizerConfig& optimizer,
                   const StepProgram& program, DeviceId device, DeviceState& state,
                   Communicator& communicator, Recorder& recorder, const Measurement& measurement)
    : model_(model),
      optimizer_(optimizer),
      program_(program),
      device_(device),
      state_(state),
      communicator_(communicator),
      recorder_(recorder),
      measurement_(measurement) {
  for (std::size_t p = 0; p < program.plan.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < program.plan.pipelines[p].stages.size(); ++s) {
      const PipelineId pipeline{p};
      const StageId stage{s};
      if (program.device_of(pipeline, stage) != device) continue;
      const StageWork work{program.layers_of(pipeline, stage),
                           program.splits_backward(pipeline, stage),
                           program.recomputes(pipeline, stage)};
      runners_.try_emplace({pipeline, stage}, model, work, program.activity, state, gradients_,
                           recorder, measurement);
    }
  }
}

std::vector<std::pair<MicroBatchId, double>> Executor::run_step(const StepInput& input) {
  input_ = input;
  losses_.clear();
  entries_.clear();
  updates_.clear();
  old_weights_.clear();
  clip_scale_ = 1;
  reduced_ = false;
  sums_.clear();
  gradients_.clear();
  for (const auto& [layer, state] : state_) {
    if (program_.activity.layers[layer.index()].weight_gradient) {
      gradients_.emplace(layer, GradientTree(program_.plan.micro_batches()));
    }
  }
  for (const Action& action : program_.schedule.devices[device_.index()]) perform(action);
  return std::move(losses_);
}

void Executor::perform(const Action& action) {
  const SteadyTime start = recorder_.now();
  Lane lane = Lane::kCompute;
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kRecompute:
      compute(action);
      break;
    case ActionKind::kPair:
      for (const Action& half : std::get<ActionPair>(action.detail).halves) compute(half);
      break;
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
      send(action, action.kind == ActionKind::kSendBackward);
      lane = Lane::kSend;
      break;
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
      receive(action, action.kind == ActionKind::kReceiveBackward);
      lane = Lane::kReceive;
      break;
    case ActionKind::kReduceGradients:
      reduce();
      lane = Lane::kCollective;
      break;
    case ActionKind::kBarrier:
      exchange_norms();
      lane = Lane::kCollective;
      break;
    case ActionKind::kUpdate:
      update(action);
      break;
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kMove:
      refuse(action);
  }
  recorder_.add(action, input_.step, lane, start);
}

void Executor::compute(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      forward(action);
      return;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      backward(action);
      return;
    case ActionKind::kBackwardWeight:
      backward_weight(action);
      return;
    case ActionKind::kRecompute:
      recompute(action);
      return;
    case ActionKind::kSendForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveForward:
    case ActionKind::kReceiveBackward:
    case ActionKind::kReduceGradients:
    case ActionKind::kBarrier:
    case ActionKind::kUpdate:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kPair:
    case ActionKind::kMove:
      refuse(action);
  }
}

StageRunner& Executor::runner(const Action& action) {
  return runners_.at({action.pipeline, action.stage});
}

at::Tensor Executor::take(const Entry& entry) {
  const auto found = entries_.find(entry);
  ENSURE(found != entries_.end(), "what an action reads is there");
  at::Tensor tensor = std::move(found->second);
  entries_.erase(found);
  return tensor;
}

void Executor::forward(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  const Samples& samples = (*input_.micro_batches)[micro_batch.index()];
  const at::Tensor x = action.stage == StageId{0}
                           ? samples.images
                           : take({action.pipeline, action.stage, micro_batch, false});
  const LayerRange layers = program_.layers_of(action.pipeline, action.stage);
  at::Tensor output = runner(action).forward(
      micro_batch, x, {input_.seed, input_.step, micro_batch}, choose_weights(action));
  if (!model_.has_loss(layers.last)) {
    entries_[{action.pipeline, StageId{action.stage.value + 1}, micro_batch, false}] =
        std::move(output);
    return;
  }
  const double share = static_cast<double>(count_samples(action)) / input_.samples;
  losses_.emplace_back(micro_batch, set_loss(action) * share);
}

// Samples that share one update: those of the step, or of the micro-batch's group.
int Executor::count_samples(const Action& action) const {
  if (program_.versions.empty()) return input_.samples;
  const std::vector<int>& group_of = program_.versions[action.stage.index()].group_of;
  const int group = group_of[micro_batch_of(action).index()];
  int samples = 0;
  for (std::size_t m = 0; m < group_of.size(); ++m) {
    if (group_of[m] == group) samples += static_cast<int>((*input_.micro_batches)[m].count());
  }
  return samples;
}

const OldWeights& Executor::choose_weights(const Action& forward) const {
  static const OldWeights kNone;
  if (program_.versions.empty()) return kNone;
  const auto done = updates_.find(forward.stage);
  const int newest = done == updates_.end() ? 0 : done->second;
  const int version =
      program_.versions[forward.stage.index()].read[micro_batch_of(forward).index()];
  ENSURE(version == newest || version + 1 == newest, "a version that the stage holds");
  return version == newest ? kNone : old_weights_;
}

double Executor::set_loss(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  const Samples& samples = (*input_.micro_batches)[micro_batch.index()];
  const double scale = static_cast<double>(samples.count()) / count_samples(action);
  return runner(action).set_loss(micro_batch, samples.labels, scale);
}

void Executor::recompute(const Action& action) {
  runner(action).recompute(micro_batch_of(action));
  if (model_.has_loss(program_.layers_of(action.pipeline, action.stage).last)) set_loss(action);
}

// Undefined where the loss is the stage's own.
at::Tensor Executor::take_gradient(const Action& action) {
  if (model_.has_loss(program_.layers_of(action.pipeline, action.stage).last)) return {};
  return take({action.pipeline, action.stage, micro_batch_of(action), true});
}

void Executor::backward(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  StageRunner& stage = runner(action);
  at::Tensor gradient = take_gradient(action);
  if (action.kind == ActionKind::kBackwardInput) {
    gradient = stage.backward_input(micro_batch, std::move(gradient));
  } else if (measurement_.split_backward && input_.step % 2 == 1) {
    gradient = stage.backward_apart(micro_batch, std::move(gradient));
  } else {
    gradient = stage.backward(micro_batch, std::move(gradient));
  }
  if (gradient.defined()) {
    entries_[{action.pipeline, StageId{action.stage.value - 1}, micro_batch, true}] =
        std::move(gradient);
  }
}

// Where no layer of a stage has an I, its W is the whole of its backward.
void Executor::backward_weight(const Action& action) {
  const MicroBatchId micro_batch = micro_batch_of(action);
  StageRunner& stage = runner(action);
  const bool is_whole = !stage.has_halves(micro_batch);
  stage.backward_weight(micro_batch, is_whole ? take_gradient(action) : at::Tensor());
}

Tag Executor::tag_of(const Entry& entry) const {
  return {entry.gradient ? MessageKind::kActivationGradient : MessageKind::kActivation,
          entry.pipeline.value, entry.stage.value, entry.micro_batch.value, input_.step};
}

void Executor::send(const Action& action, bool gradient) {
  const StageId to{action.stage.value + (gradient ? -1 : 1)};
  const Entry entry{action.pipeline, to, micro_batch_of(action), gradient};
  communicator_.send(program_.device_of(action.pipeline, to).value, tag_of(entry), {take(entry)});
}

void Executor::receive(const Action& action, bool gradient) {
  const StageId from{action.stage.value + (gradient ? 1 : -1)};
  const Entry entry{action.pipeline, action.stage, micro_batch_of(action), gradient};
  Tensors tensors =
      communicator_.receive(program_.device_of(action.pipeline, from).value, tag_of(entry));
  entries_[entry] = std::move(tensors.at(0));
}

// All groups of this device at its first REDUCE_GRAD, by ascending layer: one order for every
// device, so two owners can never wait for each other's later group.
void Executor::reduce() {
  if (reduced_) return;
  reduced_ = true;
  for (auto first = gradients_.begin(); first != gradients_.end();) {
    const std::vector<LayerOwner>& owners = program_.owners[first->first.index()];
    auto end = std::next(first);
    while (end != gradients_.end() && end->first.value == std::prev(end)->first.value + 1 &&
           program_.owners[end->first.index()] == owners) {
      ++end;
    }
    if (owners.size() > 1) reduce_group(first, end, owners);
    first = end;
  }
}

void Executor::reduce_group(GradientTrees::iterator first, GradientTrees::iterator end,
                            const std::vector<LayerOwner>& owners) {
  Tensors like;
  std::vector<std::pair<TreeNode, Tensors>> nodes;
  for (auto layer = first; layer != end; ++layer) {
    const Tensors& parameters = state_.at(layer->first).parameters;
    like.insert(like.end(), parameters.begin(), parameters.end());
    std::vector<std::pair<TreeNode, Tensors>> own = layer->second.take_nodes();
    if (nodes.empty()) {
      nodes = std::move(own);
      continue;
    }
    ENSURE(own.size() == nodes.size(), "layers with equal owners have equal nodes");
    for (std::size_t n = 0; n < own.size(); ++n) {
      nodes[n].second.insert(nodes[n].second.end(), own[n].second.begin(), own[n].second.end());
    }
  }
  const Tensors sums =
      reduce_exactly(nodes, like, owners, program_.plan.micro_batches(), communicator_,
                     {.index = first->first.value, .step = input_.step});
  auto next = sums.begin();
  for (auto layer = first; layer != end; ++layer) {
    const auto count = static_cast<std::ptrdiff_t>(state_.at(layer->first).parameters.size());
    sums_[layer->first] = Tensors(next, next + count);
    next += count;
  }
}

void Executor::exchange_norms() {
  for (auto& [layer, tree] : gradients_) {
    if (!sums_.contains(layer)) sums_[layer] = tree.take_root();
  }
  clip_scale_ =
      find_clip_scale(sums_, program_, device_, communicator_, input_.step, optimizer_.clip_norm);
}

void Executor::update(const Action& action) {
  const LayerRange layers = program_.layers_of(action.pipeline, action.stage);
  for (LayerId l = layers.first; l <= layers.last; ++l.value) {
    const auto tree = gradients_.find(l);
    if (tree == gradients_.end()) continue;
    auto sum = sums_.find(l);
    Tensors gradients = sum != sums_.end()          ? std::move(sum->second)
                        : program_.versions.empty() ? tree->second.take_root()
                                                    : tree->second.take_folded();
    if (sum != sums_.end()) sums_.erase(sum);
    update_weights(l, std::move(gradients));
    if (program_.versions.empty()) gradients_.erase(tree);
  }
  if (!program_.versions.empty()) note_reads(action);
}

void Executor::update_weights(LayerId layer, Tensors gradients) {
  const SteadyTime start = recorder_.now();
  if (clip_scale_ != 1) {
    for (at::Tensor& gradient : gradients) gradient = at::mul(gradient, clip_scale_);
  }
  for (at::Tensor& gradient : gradients) gradient = gradient.contiguous();
  LayerState& state = state_.at(layer);
  if (!program_.versions.empty()) {
    // Graphs of micro-batches in flight hold the version that they have read.
    old_weights_[layer] = state.parameters;
    for (at::Tensor& parameter : state.parameters) {
      parameter = parameter.detach().clone().set_requires_grad(true);
    }
  }
  update_layer(state, gradients, optimizer_, input_.learning_rate);
  if (measurement_.layers) {
    recorder_.add_layer({layer, LayerPhase::kUpdate, 0,
                         std::chrono::duration_cast<Duration>(recorder_.now() - start)});
  }
}

void Executor::note_reads(const Action& update) {
  const StageVersions& versions = program_.versions[update.stage.index()];
  const int group = updates_[update.stage]++;
  for (std::size_t m = 0; m < versions.read.size(); ++m) {
    if (versions.group_of[m] != group) continue;
    recorder_.add_weight_read(
        {update.stage, MicroBatchId{m}, versions.read[m], group - versions.read[m]});
  }
}

}  // namespace frazil
