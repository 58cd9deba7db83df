#include "exec/models/imported/layer_program.h"

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <set>
#include <utility>

#include "exec/models/linear_without_bias.h"
#include "profiles/error.h"
#include "profiles/json.h"

namespace frazil {
namespace {

// Returns what a folded node is called with: no samples, no training, the host.
NodeCall call_without_samples(const RandomKey& key) {
  return {.arguments = {}, .layer = {}, .key = key};
}

bool is_folded(const ResolvedNode& node, const std::vector<bool>& is_fixed) {
  const NodeArguments& arguments = node.arguments();
  if (node.draws() || !node.writes().empty() || arguments.depends_on_samples() ||
      arguments.depends_on_training()) {
    return false;
  }
  return std::all_of(arguments.reads().begin(), arguments.reads().end(),
                     [&](std::size_t slot) { return slot < is_fixed.size() && is_fixed[slot]; });
}

}  // namespace

LayerProgram::LayerProgram(const ImportedModel& model, const ProgramSource& source,
                           Randomness randomness)
    : parameters_(source.parameters.size()) {
  const std::string& file = model.tensors.file();
  Slots slots;
  const auto add = [&slots](const std::string& name) {
    slots.emplace(name, slots.size());
    return slots.size() - 1;
  };
  for (std::size_t i = 0; i < source.inputs.size(); ++i) {
    inputs_.push_back({add(source.inputs[i]), source.input_positions[i], false});
  }
  samples_ = {source.input_positions[source.samples.input], source.samples.dimension};
  first_parameter_ = slots.size();
  for (const std::size_t p : source.parameters) add("p" + std::to_string(p));
  Tensors values;
  std::vector<bool> is_fixed(slots.size(), false);
  const auto add_fixed = [&](const std::string& name, const std::string& tensor) {
    const std::size_t slot = add(name);
    values.resize(slot + 1);
    values[slot] = model.tensors.copy(tensor);
    is_fixed.push_back(true);
  };
  for (const std::size_t c : source.constants) {
    add_fixed("c" + std::to_string(c), model.graph.constants[c]);
  }
  first_buffer_ = slots.size();
  for (const std::size_t b : source.buffers) add("b" + std::to_string(b));
  is_fixed.resize(slots.size(), false);
  for (const ImportedNode& node : source.nodes) {
    nodes_.emplace_back(node, model.graph, randomness, slots, file);
  }
  slots_ = slots.size();
  for (const std::string& output : source.outputs) outputs_.push_back(slots.at(output));
  values.resize(slots_);
  is_fixed.resize(slots_, false);
  try {
    fold(values, is_fixed);
  } catch (const c10::Error& error) {
    throw InputError(
        file, 0,
        "an operation on constants that fails: " + to_one_line(error.what_without_backtrace()),
        "one that computes");
  }
  find_statistics(model, source);
  find_written(model, source);
  find_last_reads();
  find_joins(source);
}

// Computes what depends on constants alone, once, and leaves the other nodes.
void LayerProgram::fold(Tensors& values, const std::vector<bool>& given) {
  const c10::NoGradGuard no_grad;
  const RandomKey key;
  Stack stack;
  std::vector<bool> is_fixed = given;
  // A constant that some node writes into has another value afterwards.
  const std::vector<std::size_t> shared = find_shared_memory(nodes_, slots_);
  std::set<std::size_t> written;
  for (const ResolvedNode& node : nodes_) {
    for (const std::size_t slot : node.writes()) written.insert(shared[slot]);
  }
  std::vector<ResolvedNode> left;
  for (ResolvedNode& node : nodes_) {
    const bool is_stable =
        std::none_of(node.makes().begin(), node.makes().end(),
                     [&](std::size_t slot) { return written.contains(shared[slot]); });
    if (!is_stable || !is_folded(node, is_fixed)) {
      left.push_back(std::move(node));
      continue;
    }
    node.run(values, stack, call_without_samples(key));
    for (const std::size_t slot : node.makes()) is_fixed[slot] = true;
  }
  nodes_ = std::move(left);
  std::set<std::size_t> needed(outputs_.begin(), outputs_.end());
  for (const ResolvedNode& node : nodes_) {
    needed.insert(node.arguments().reads().begin(), node.arguments().reads().end());
  }
  for (const std::size_t slot : needed) {
    if (is_fixed[slot]) fixed_.push_back({slot, values[slot], false});
  }
}

void LayerProgram::find_statistics(const ImportedModel& model, const ProgramSource& source) {
  momenta_.assign(source.buffers.size(), 0);
  if (!source.keeps_statistics) return;
  std::vector<int> keepers(source.buffers.size(), 0);
  std::vector<int> reads(source.buffers.size(), 0);
  for (const ResolvedNode& node : nodes_) {
    for (const std::size_t slot : node.keeps()) {
      if (slot < first_buffer_ || slot >= first_buffer_ + momenta_.size()) continue;
      ++keepers[slot - first_buffer_];
      momenta_[slot - first_buffer_] = node.momentum();
    }
    for (const std::size_t slot : node.arguments().reads()) {
      if (slot >= first_buffer_ && slot < first_buffer_ + reads.size()) {
        ++reads[slot - first_buffer_];
      }
    }
  }
  for (std::size_t b = 0; b < momenta_.size(); ++b) {
    const ImportedBuffer& buffer = model.graph.buffers[source.buffers[b]];
    const int expected = buffer.is_counter ? 0 : 1;
    if (keepers[b] == expected && reads[b] == expected) continue;
    throw InputError(model.tensors.file(), 0,
                     "the buffer " + json_string(buffer.name) + ", read by " +
                         std::to_string(reads[b]) + " operations, of which " +
                         std::to_string(keepers[b]) + " keep it in training",
                     buffer.is_counter ? "a counter that nothing reads"
                                       : "a running mean or variance of one normalisation");
  }
}

// A call may change neither what a sender still holds nor what all threads read.
void LayerProgram::find_written(const ImportedModel& model, const ProgramSource& source) {
  const std::vector<std::size_t> shared = find_shared_memory(nodes_, slots_);
  std::set<std::size_t> written;
  for (const ResolvedNode& node : nodes_) {
    for (const std::size_t slot : node.writes()) written.insert(shared[slot]);
  }
  for (Input& input : inputs_) input.is_written = written.contains(shared[input.slot]);
  for (Fixed& fixed : fixed_) fixed.is_written = written.contains(shared[fixed.slot]);
  for (std::size_t p = 0; p < source.parameters.size(); ++p) {
    if (written.contains(shared[first_parameter_ + p])) written_parameters_.push_back(p);
  }
  for (std::size_t b = 0; b < momenta_.size(); ++b) {
    if (!written.contains(shared[first_buffer_ + b])) continue;
    const ImportedBuffer& buffer = model.graph.buffers[source.buffers[b]];
    throw InputError(model.tensors.file(), 0,
                     "an operation that writes into the buffer " + json_string(buffer.name),
                     "one that gives a tensor of its own");
  }
}

void LayerProgram::find_last_reads() {
  steps_.resize(nodes_.size());
  std::set<std::size_t> kept(outputs_.begin(), outputs_.end());
  for (std::size_t b = 0; b < momenta_.size(); ++b) kept.insert(first_buffer_ + b);
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    const auto let_go = [&](std::size_t slot) {
      if (kept.insert(slot).second) steps_[n].last_reads.push_back(slot);
    };
    for (const std::size_t slot : nodes_[n].arguments().reads()) let_go(slot);
    nodes_[n].let_go(steps_[n].last_reads);
    for (const std::size_t slot : nodes_[n].makes()) let_go(slot);  // where nobody reads it
  }
}

void LayerProgram::find_joins(const ProgramSource& source) {
  std::vector<Origin> origins(first_parameter_, Origin::kInput);
  origins.resize(first_parameter_ + source.parameters.size(), Origin::kParameter);
  flow_ = find_flow(nodes_, origins, slots_, outputs_);
  if (!written_parameters_.empty()) flow_.has_seams = false;
  if (!flow_.has_seams) return;
  for (const ParameterJoin& join : flow_.joins) {
    steps_[join.node].join = &join;
    find_known(steps_[join.node]);
  }
}

// Finds out whether the node is a linear map or a norm of the layer's own weight and bias, or a
// linear map of its own weight alone.
void LayerProgram::find_known(Step& step) const {
  const ResolvedNode& node = nodes_[step.join->node];
  const NodeArguments& arguments = node.arguments();
  const bool is_linear = node.node().op == "aten::linear";
  if (!step.join->stays || (!is_linear && node.node().op != "aten::layer_norm")) return;
  const auto input = arguments.slot_of(0);
  const std::size_t weight = is_linear ? 1 : 2;
  const bool has_bias = !is_linear || arguments.slot_of(weight + 1);
  std::vector<std::size_t> own;
  for (std::size_t a = weight; a <= weight + (has_bias ? 1 : 0); ++a) {
    const auto slot = arguments.slot_of(a);
    if (!slot || *slot < first_parameter_ || *slot >= first_parameter_ + parameters_) return;
    own.push_back(*slot - first_parameter_);
  }
  step.own = std::move(own);
  step.input = *input;
  if (!is_linear) step.epsilon = arguments.known("eps").toDouble();
  step.known = is_linear ? Known::kLinear : Known::kLayerNorm;
}

void LayerProgram::begin(const LayerCall& call, Tensors& values) const {
  values.resize(slots_);
  for (const Input& input : inputs_) {
    const at::Tensor& given = call.inputs.at(input.position);
    values[input.slot] = input.is_written ? given.clone() : given;
  }
  for (std::size_t p = 0; p < parameters_; ++p) values[first_parameter_ + p] = call.parameters[p];
  for (const std::size_t p : written_parameters_) {
    values[first_parameter_ + p] = call.parameters[p].clone();
  }
  ENSURE(momenta_.empty() ||
             (call.statistics != nullptr && call.statistics->size() == momenta_.size()),
         "the statistics of a layer that has some");
  for (std::size_t b = 0; b < momenta_.size(); ++b) {
    values[first_buffer_ + b] = call.statistics->at(b);
  }
  const c10::Device device = call.inputs.front().device();
  for (const Fixed& fixed : fixed_) {
    const at::Tensor here = fixed.value.device() == device ? fixed.value : fixed.value.to(device);
    values[fixed.slot] = fixed.is_written ? here.clone() : here;
  }
}

// Returns false if the operation must run by itself, because a part of its parameters does not
// train, or its input does not lie as a linear map without a bias takes it.
bool LayerProgram::run_known(const Step& step, Tensors& values, const LayerCall& call) const {
  if (step.known == Known::kNone || call.operations == nullptr) return false;
  for (const std::size_t p : step.own) {
    if (!call.parameters[p].requires_grad()) return false;
  }
  const at::Tensor& x = values[step.input];
  if (step.own.size() == 1 && (x.dim() < 2 || !x.is_contiguous())) return false;
  values[step.join->output] = perform_known(step, x, call);
  return true;
}

at::Tensor LayerProgram::perform_known(const Step& step, const at::Tensor& x,
                                       const LayerCall& call) const {
  if (step.own.size() == 1) return linear_without_bias(call, x, step.own[0]);
  const ParametricOperations with(call.parameters, call.operations);
  return step.known == Known::kLinear ? with.linear(x, step.own[0], step.own[1])
                                      : with.layer_norm(x, step.own[0], step.own[1], step.epsilon);
}

void LayerProgram::tell(const Step& step, const Tensors& values, const LayerCall& call) const {
  if (step.join == nullptr || call.operations == nullptr) return;
  const at::Tensor& output = values[step.join->output];
  ParametricOperation operation{output, {}, {}};
  for (const std::size_t p : step.join->parameters) {
    if (call.parameters[p].requires_grad()) operation.parameters.push_back(p);
  }
  if (operation.parameters.empty() || !output.requires_grad()) return;
  call.operations->push_back(std::move(operation));
}

bool LayerProgram::draws() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const ResolvedNode& node) { return node.draws(); });
}

bool LayerProgram::draws_in_evaluation() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const ResolvedNode& node) { return node.draws_in_evaluation(); });
}

// The normalisations have left the statistics of the call's samples where the running ones were.
void LayerProgram::hand_out_statistics(const Tensors& values, const LayerCall& call) const {
  for (std::size_t b = 0; b < momenta_.size(); ++b) {
    const at::Tensor& found = values[first_buffer_ + b];
    call.batch_statistics->push_back(found.scalar_type() == at::kLong ? at::Tensor() : found);
  }
}

Tensors LayerProgram::run(const LayerCall& call) const {
  // Memory that the calls of a thread use again, since they are short and many. What throws loses
  // it, and the next call takes new memory.
  thread_local Tensors kept_values;
  thread_local Stack kept_stack;
  Tensors values = std::exchange(kept_values, {});
  Stack stack = std::exchange(kept_stack, {});
  begin(call, values);
  const at::Tensor& counted = call.inputs.at(samples_.input);
  const NodeCall now{
      .arguments = {.samples = counted.size(static_cast<std::int64_t>(samples_.dimension)),
                    .device = call.inputs.front().device(),
                    .training = call.training},
      .layer = call.layer,
      .key = call.key};
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Step& step = steps_[n];
    if (!run_known(step, values, call)) {
      nodes_[n].run(values, stack, now);
      tell(step, values, call);
    }
    for (const std::size_t slot : step.last_reads) values[slot].reset();
  }
  if (call.training && call.batch_statistics != nullptr) hand_out_statistics(values, call);
  Tensors outputs;
  outputs.reserve(outputs_.size());
  for (const std::size_t slot : outputs_) outputs.push_back(values[slot]);
  values.clear();
  kept_values = std::move(values);
  kept_stack = std::move(stack);
  return outputs;
}

}  // namespace frazil
