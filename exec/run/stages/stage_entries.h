#pragma once
// StageEntries holds what the stages of one device have ready in a step: what they put out, and the
// gradients of what they have read, each for one other stage, until that stage or a SEND takes it.
// What a stage with slices hands on is cut and what it reads is joined, sample by sample.

#include <cstdint>
#include <map>

#include "exec/models/model.h"
#include "exec/program/step_program.h"
#include "exec/run/stages/stage_runner.h"
#include "planner/actions/message.h"

namespace frazil {

class StageEntries {
 public:
  // The references must outlive this object. `action` below is an F or a backward of one
  // micro-batch.
  StageEntries(const ModelSpec& model, const StepProgram& program)
      : model_(model), program_(program) {}

  void clear() { ready_.clear(); }

  // Hand out what has come for an action: the inputs of an F, or the gradients of a backward.
  EdgeTensors take_activations(const Action& action);
  EdgeTensors take_gradients(const Action& action);
  // Store what an action has put out for other stages. Throw InfeasibleError if a tensor that is to
  // be cut does not count its samples in dimension 0.
  void leave_activations(const Action& action, EdgeTensors outputs);
  void leave_gradients(const Action& action, EdgeTensors gradients);

  // Returns the bytes that have come from other devices for layers without a backward. What layers
  // with a backward read counts as stash.
  std::int64_t count_received(const Action& forward) const;

  // Take out or store the tensors of one message, edge by edge.
  Tensors take(const Message& message);
  void put(const Message& message, Tensors tensors);

 private:
  const PipelineTopology& topology(const Action& action) const;
  void take_joined(const Action& action, StageId peer, bool backward,
                   const std::vector<std::size_t>& edges, EdgeTensors& into);
  void leave_cut(const Action& action, StageId peer, bool backward,
                 const std::vector<std::size_t>& edges, EdgeTensors& from);

  const ModelSpec& model_;
  const StepProgram& program_;
  std::map<Message, Tensors> ready_;
};

}  // namespace frazil
