// The part of the executor (exec/run/executor.h) that reads features of the cached prefix for an F
// and stores those that the F has made.
#include "exec/run/executor.h"

#include <utility>

namespace frazil {
namespace {

// Returns the MOVE of what layers [0, depth) put out for the micro-batch of an F.
Action move_features(const Action& forward, int depth, Place from, Place to) {
  Action move = forward;
  move.kind = ActionKind::kMove;
  move.detail = CellMove{.cell = CellKind::kFeatures,
                         .layers = std::pair(LayerId{0}, LayerId{depth - 1}),
                         .version = {},
                         .from = from,
                         .to = to};
  return move;
}

}  // namespace

// Reading the cache, with what missing rows run for it, and writing to the cache are spans inside
// the F.
void Executor::find_features(const Action& action, std::span<const std::int64_t> ids,
                             StageRunner::Data& data) {
  const SteadyTime start = recorder_.now();
  data.features = prefix_->find(*input_.cache, ids, action.micro_batches->first, data);
  if (data.features.depth == 0) return;
  const Place here{Place::Kind::kDevice, device_};
  recorder_.add_inside(move_features(action, data.features.depth, {}, here), input_.step, start);
}

void Executor::keep_features(const Action& action, const Tensors& features) {
  const GpuLanes* const lanes = recorder_.compute().lanes();
  if (lanes == nullptr) return store_features(action, features);
  Tensors here;
  for (const at::Tensor& tensor : features) here.push_back(lanes->download(tensor));
  features_.emplace_back(&action, std::move(here));
}

void Executor::store_features(const Action& action, const Tensors& features) {
  const SteadyTime start = recorder_.now();
  data_.keep_features(action, features);
  const Place here{Place::Kind::kDevice, device_};
  recorder_.add_inside(move_features(action, program_.activity.cached, here, {}), input_.step,
                       start);
}

}  // namespace frazil
