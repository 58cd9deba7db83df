#pragma once
// What the stages of one device have ready in a step: what they put out, and the gradients of what
// they have read, each for one other stage, until that stage takes it or a SEND does.

#include <map>

#include "exec/model.h"
#include "exec/stage_runner.h"
#include "exec/step_program.h"
#include "planner/message.h"

namespace frazil {

class StageEntries {
 public:
  // References must outlive it. `action` below is an F or a backward of one micro-batch.
  StageEntries(const ModelSpec& model, const StepProgram& program)
      : model_(model), program_(program) {}

  void clear() { ready_.clear(); }

  EdgeTensors take_activations(const Action& action);
  EdgeTensors take_gradients(const Action& action);
  void leave_activations(const Action& action, EdgeTensors outputs);
  void leave_gradients(const Action& action, EdgeTensors gradients);

  // As one message, edge by edge.
  Tensors take(const Message& message);
  void put(const Message& message, Tensors tensors);

 private:
  const StageLinks& links(const Action& action) const;
  void unpack(const Message& message, const std::vector<std::size_t>& edges, EdgeTensors& into);

  const ModelSpec& model_;
  const StepProgram& program_;
  std::map<Message, Tensors> ready_;
};

}  // namespace frazil
