#pragma once
// Names the messages between the ranks of a run, and the lanes in which messages keep their order.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "profiles/units.h"

namespace frazil {

enum class MessageKind : std::uint8_t {
  kActivation,
  kActivationGradient,
  kGradientNodes,
  kGradientSum,
  kTiedSum,  // gradients of one use of a tied parameter
  kSquaredNorms,
  kProbe,
  kLayerState,   // of a layer, in a transition
  kLayerOutput,  // of a layer, in an evaluation
  kStatistics,   // of a step's micro-batches
};

// Names a message between two ranks; unique among the messages not yet received.
struct Tag {
  MessageKind kind = MessageKind::kProbe;
  std::int32_t pipeline = 0;
  std::int32_t from = 0;   // the stage that sends, or the round of a ring
  std::int32_t stage = 0;  // the stage that receives
  std::int32_t index = 0;  // micro-batch, or group of layers, or layer
  Step step = 0;

  friend auto operator<=>(const Tag&, const Tag&) = default;
};

// Returns "the activation of micro-batch 3 into stage 1 (step 17)"; pipelines except the first are
// named.
std::string to_text(const Tag& tag);

// Messages of one lane from one rank to another are received in the order in which they are sent.
// Between lanes there is no order: in an ordered world each is a connection of its own.
enum class MessageLane : std::uint8_t {
  kActivation,
  kActivationGradient,
  kReduction,
  kNorms,  // and statistics, which come before them
  kProbe,
  kState
};
inline constexpr std::size_t kMessageLanes = 6;

MessageLane lane_of(MessageKind kind);

}  // namespace frazil
