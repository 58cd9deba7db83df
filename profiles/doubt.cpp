#include "profiles/doubt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace frazil {

std::string_view name_of(DoubtedFact fact) {
  switch (fact) {
    case DoubtedFact::kMicroBatchSize:
      return "micro_batch_size";
    case DoubtedFact::kParameters:
      return "parameter_bytes";
    case DoubtedFact::kOptimizerState:
      return "optimizer_state_bytes";
    case DoubtedFact::kUpdate:
      return "update_ns";
    case DoubtedFact::kStash:
      return "stash_bytes";
    case DoubtedFact::kBoundaries:
      return "tensor_bytes_per_sample";
  }
  return "";
}

std::string_view name_of(DoubtKind kind) {
  switch (kind) {
    case DoubtKind::kLowerBound:
      return "lower-bound";
    case DoubtKind::kByRule:
      return "by-rule";
    case DoubtKind::kDefault:
      return "default";
    case DoubtKind::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view words_of(DoubtedFact fact) {
  switch (fact) {
    case DoubtedFact::kMicroBatchSize:
      return "the micro-batch size";
    case DoubtedFact::kParameters:
      return "parameters";
    case DoubtedFact::kOptimizerState:
      return "optimizer state";
    case DoubtedFact::kUpdate:
      return "update times";
    case DoubtedFact::kStash:
      return "saved activations";
    case DoubtedFact::kBoundaries:
      return "tensors between layers";
  }
  return "";
}

std::string_view words_of(DoubtKind kind) {
  switch (kind) {
    case DoubtKind::kLowerBound:
      return "a lower bound";
    case DoubtKind::kByRule:
      return "by rule";
    case DoubtKind::kDefault:
      return "a default";
    case DoubtKind::kUnknown:
      return "not known";
  }
  return "";
}

bool is_about_memory(DoubtedFact fact) {
  switch (fact) {
    case DoubtedFact::kMicroBatchSize:
    case DoubtedFact::kParameters:
    case DoubtedFact::kOptimizerState:
    case DoubtedFact::kStash:
    case DoubtedFact::kBoundaries:
      return true;
    case DoubtedFact::kUpdate:
      return false;
  }
  return false;
}

void note_doubt(std::vector<Doubt>& doubts, Doubt doubt) {
  const auto place = std::find_if(doubts.begin(), doubts.end(),
                                  [&](const Doubt& other) { return other.fact >= doubt.fact; });
  if (place != doubts.end() && place->fact == doubt.fact) {
    *place = std::move(doubt);
  } else {
    doubts.insert(place, std::move(doubt));
  }
}

std::string memory_condition(const std::vector<Doubt>& doubts) {
  std::vector<std::string_view> facts;
  bool is_size_doubted = false;
  for (const Doubt& doubt : doubts) {
    const bool is_size = doubt.fact == DoubtedFact::kMicroBatchSize;
    is_size_doubted = is_size_doubted || is_size;
    if (!is_size && is_about_memory(doubt.fact)) facts.push_back(words_of(doubt.fact));
  }
  std::string text;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == facts.size() ? " and " : ", ", facts[i]);
  }
  const bool is_one = facts.size() == 1 && facts[0] == words_of(DoubtedFact::kOptimizerState);
  if (!text.empty())
    text += fmt::format(" {} no more than the profile says", is_one ? "takes" : "take");
  if (!is_size_doubted) return text;
  return text + (text.empty() ? "" : ", and ") + "the micro-batch size is right";
}

}  // namespace frazil
