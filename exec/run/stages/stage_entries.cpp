#include "exec/run/stages/stage_entries.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "exec/tensors/sample_rows.h"
#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Names the message that an action takes from a part of another stage.
Message name_incoming(const Action& action, StageId peer, const StagePart& part, bool backward) {
  return {.pipeline = action.pipeline,
          .from = peer,
          .to = action.stage,
          .backward = backward,
          .micro_batch = action.micro_batches->first,
          .from_slice = part.slice,
          .to_slice = action.slice};
}

// Names the message that an action leaves for a part of another stage.
Message name_leaving(const Action& action, StageId peer, const StagePart& part, bool backward) {
  return {.pipeline = action.pipeline,
          .from = action.stage,
          .to = peer,
          .backward = backward,
          .micro_batch = action.micro_batches->first,
          .from_slice = action.slice,
          .to_slice = part.slice};
}

}  // namespace

const PipelineTopology& StageEntries::topology(const Action& action) const {
  return program_.topology.pipelines[action.pipeline.index()];
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

void StageEntries::take_joined(const Action& action, StageId peer, bool backward,
                               const std::vector<std::size_t>& edges, EdgeTensors& into) {
  std::vector<Tensors> messages;
  for (const StagePart& part : find_peers(program_.plan, action, peer)) {
    messages.push_back(take(name_incoming(action, peer, part, backward)));
  }
  std::size_t next = 0;
  for (const std::size_t e : edges) {
    Tensors& tensors = into[e];
    for (std::size_t i = 0; i < model_.edges[e].outputs.size(); ++i, ++next) {
      Tensors pieces;
      for (Tensors& message : messages) pieces.push_back(std::move(message.at(next)));
      tensors.push_back(join_rows(pieces));
    }
  }
  for (const Tensors& message : messages) {
    ENSURE(next == message.size(), "a message holds what its edges carry");
  }
}

void StageEntries::leave_cut(const Action& action, StageId peer, bool backward,
                             const std::vector<std::size_t>& edges, EdgeTensors& from) {
  const std::vector<StagePart> parts = find_peers(program_.plan, action, peer);
  const SampleInterval own = samples_of(program_.plan, action);
  const bool has_slices = action.slice || parts.front().slice;
  Tensors packed;
  for (const std::size_t e : edges) {
    for (at::Tensor& tensor : from.at(e)) {
      if (has_slices) require_samples(tensor, model_.edges[e].from, own.count());
      packed.push_back(std::move(tensor));
    }
  }
  for (const StagePart& part : parts) {
    const bool is_whole = part.samples == own;
    put(name_leaving(action, peer, part, backward),
        is_whole ? std::move(packed)
                 : take_rows(packed, part.samples.first - own.first, part.samples.count()));
  }
}

EdgeTensors StageEntries::take_activations(const Action& action) {
  EdgeTensors inputs;
  for (const std::size_t c : topology(action).incoming[action.stage.index()]) {
    const StageCrossing& crossing = topology(action).crossings[c];
    take_joined(action, crossing.from, false, crossing.edges, inputs);
  }
  return inputs;
}

EdgeTensors StageEntries::take_gradients(const Action& action) {
  EdgeTensors gradients;
  for (const std::size_t c : topology(action).outgoing[action.stage.index()]) {
    const StageCrossing& crossing = topology(action).crossings[c];
    if (!crossing.carrying.empty())
      take_joined(action, crossing.to, true, crossing.carrying, gradients);
  }
  return gradients;
}

void StageEntries::leave_activations(const Action& action, EdgeTensors outputs) {
  for (const std::size_t c : topology(action).outgoing[action.stage.index()]) {
    const StageCrossing& crossing = topology(action).crossings[c];
    leave_cut(action, crossing.to, false, crossing.edges, outputs);
  }
}

void StageEntries::leave_gradients(const Action& action, EdgeTensors gradients) {
  for (const std::size_t c : topology(action).incoming[action.stage.index()]) {
    const StageCrossing& crossing = topology(action).crossings[c];
    if (!crossing.carrying.empty())
      leave_cut(action, crossing.from, true, crossing.carrying, gradients);
  }
}

std::int64_t StageEntries::count_received(const Action& forward) const {
  const DeviceId here = program_.device_of(forward.pipeline, forward.stage,
                                           forward.micro_batches->first, forward.slice);
  std::int64_t bytes = 0;
  for (const std::size_t c : topology(forward).incoming[forward.stage.index()]) {
    const StageCrossing& crossing = topology(forward).crossings[c];
    for (const StagePart& part : find_peers(program_.plan, forward, crossing.from)) {
      if (part.device == here) continue;
      auto tensor = ready_.at(name_incoming(forward, crossing.from, part, false)).begin();
      for (const std::size_t e : crossing.edges) {
        const bool is_stash = program_.activity.backward(model_.edges[e].to);
        for (std::size_t i = 0; i < model_.edges[e].outputs.size(); ++i, ++tensor) {
          if (!is_stash) bytes += static_cast<std::int64_t>(tensor->nbytes());
        }
      }
    }
  }
  return bytes;
}

}  // namespace frazil
