#include "exec/stage_entries.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

Message make_message(const Action& action, StageId from, StageId to, bool backward) {
  return {.pipeline = action.pipeline,
          .from = from,
          .to = to,
          .backward = backward,
          .micro_batch = action.micro_batches->first,
          .slice = {}};
}

// Tensors of the given edges, one after another.
Tensors pack(const std::vector<std::size_t>& edges, EdgeTensors& from) {
  Tensors packed;
  for (const std::size_t e : edges) {
    for (at::Tensor& tensor : from.at(e)) packed.push_back(std::move(tensor));
  }
  return packed;
}

}  // namespace

const StageLinks& StageEntries::links(const Action& action) const {
  return program_.links[action.pipeline.index()][action.stage.index()];
}

Tensors StageEntries::take(const Message& message) {
  const auto found = ready_.find(message);
  ENSURE(found != ready_.end(), "what an action reads is there");
  Tensors tensors = std::move(found->second);
  ready_.erase(found);
  return tensors;
}

void StageEntries::put(const Message& message, Tensors tensors) {
  ENSURE(ready_.emplace(message, std::move(tensors)).second, "a message comes once");
}

void StageEntries::unpack(const Message& message, const std::vector<std::size_t>& edges,
                          EdgeTensors& into) {
  Tensors packed = take(message);
  std::size_t next = 0;
  for (const std::size_t e : edges) {
    Tensors& tensors = into[e];
    for (std::size_t i = 0; i < model_.edges[e].outputs.size(); ++i) {
      tensors.push_back(std::move(packed.at(next++)));
    }
  }
  ENSURE(next == packed.size(), "a message holds what its edges carry");
}

EdgeTensors StageEntries::take_activations(const Action& action) {
  EdgeTensors inputs;
  for (const StageLink& link : links(action).reads) {
    unpack(make_message(action, link.peer, action.stage, false), link.edges, inputs);
  }
  return inputs;
}

EdgeTensors StageEntries::take_gradients(const Action& action) {
  EdgeTensors gradients;
  for (const StageLink& link : links(action).feeds) {
    if (link.carrying.empty()) continue;
    unpack(make_message(action, link.peer, action.stage, true), link.carrying, gradients);
  }
  return gradients;
}

void StageEntries::leave_activations(const Action& action, EdgeTensors outputs) {
  for (const StageLink& link : links(action).feeds) {
    put(make_message(action, action.stage, link.peer, false), pack(link.edges, outputs));
  }
}

void StageEntries::leave_gradients(const Action& action, EdgeTensors gradients) {
  for (const StageLink& link : links(action).reads) {
    if (link.carrying.empty()) continue;
    put(make_message(action, action.stage, link.peer, true), pack(link.carrying, gradients));
  }
}

}  // namespace frazil
