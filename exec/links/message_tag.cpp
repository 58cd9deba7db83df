#include "exec/links/message_tag.h"

namespace frazil {
namespace {

std::string of_pipeline(const Tag& tag) {
  return tag.pipeline == 0 ? "" : " of pipeline " + std::to_string(tag.pipeline);
}

// Names the receiving stage, and the sending one unless it is `usual`, the neighbour.
std::string between_stages(const Tag& tag, int usual) {
  const std::string from = tag.from == usual ? "" : " from stage " + std::to_string(tag.from);
  return from + " into stage " + std::to_string(tag.stage) + of_pipeline(tag);
}

std::string in_round(const Tag& tag) {
  return tag.from == 0 ? "" : ", round " + std::to_string(tag.from);
}

bool is_between_steps(MessageKind kind) {
  return kind == MessageKind::kLayerState || kind == MessageKind::kLayerOutput;
}

std::string name_content(const Tag& tag) {
  const std::string index = std::to_string(tag.index);
  switch (tag.kind) {
    case MessageKind::kActivation:
      return "the activation of micro-batch " + index + between_stages(tag, tag.stage - 1);
    case MessageKind::kActivationGradient:
      return "the gradient of micro-batch " + index + between_stages(tag, tag.stage + 1);
    case MessageKind::kGradientNodes:
      return "the partial gradients of the layers from " + index + " on" + in_round(tag);
    case MessageKind::kGradientSum:
      return "the summed gradients of the layers from " + index + " on" + in_round(tag);
    case MessageKind::kTiedSum:
      return "the gradients of the tied layer " + index;
    case MessageKind::kSquaredNorms:
      return tag.index == 0 ? "the squared norms" : "the clip scale";
    case MessageKind::kProbe:
      return "probe " + index;
    case MessageKind::kLayerState:
      return "the state of layer " + index;
    case MessageKind::kLayerOutput:
      return "what layer " + std::to_string(tag.stage) + " puts out for micro-batch " + index;
    case MessageKind::kStatistics:
      return "the statistics of micro-batches";
  }
  return "a message";
}

}  // namespace

std::string to_text(const Tag& tag) {
  return name_content(tag) + (is_between_steps(tag.kind) ? " (job " : " (step ") +
         std::to_string(tag.step) + ")";
}

MessageLane lane_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kActivation:
      return MessageLane::kActivation;
    case MessageKind::kActivationGradient:
      return MessageLane::kActivationGradient;
    case MessageKind::kGradientNodes:
    case MessageKind::kGradientSum:
    case MessageKind::kTiedSum:
      return MessageLane::kReduction;
    case MessageKind::kSquaredNorms:
    case MessageKind::kStatistics:
      return MessageLane::kNorms;
    case MessageKind::kProbe:
      return MessageLane::kProbe;
    case MessageKind::kLayerState:
    case MessageKind::kLayerOutput:
      return MessageLane::kState;
  }
  return MessageLane::kProbe;
}

}  // namespace frazil
