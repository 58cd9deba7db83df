#include "planner/prediction/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

bool is_one(DoubtedFact fact) {
  return fact == DoubtedFact::kMicroBatchSize || fact == DoubtedFact::kOptimizerState;
}

}  // namespace

std::string list_doubts(const ModelProfile& profile) {
  std::string text;
  for (const Doubt& doubt : profile.doubts) {
    text +=
        fmt::format("note: {} {} {}: {}\n", words_of(doubt.fact), is_one(doubt.fact) ? "is" : "are",
                    words_of(doubt.kind), to_one_line(doubt.reason));
  }
  return text;
}

std::string fits_if(const ModelProfile& profile, const std::string& verb) {
  const std::string condition = memory_condition(profile.doubts);
  return condition.empty() ? "" : fmt::format("{} if {}\n", verb, condition);
}

bool is_memory_unknown(const ModelProfile& profile) {
  return std::any_of(profile.doubts.begin(), profile.doubts.end(), [](const Doubt& doubt) {
    return doubt.kind == DoubtKind::kUnknown && is_about_memory(doubt.fact);
  });
}

std::string memory_text(const ModelProfile& profile, Bytes bytes) {
  return (is_memory_unknown(profile) ? ">= " : "") + to_text(bytes);
}

std::string doubts_json(const ModelProfile& profile) {
  Json json = Json::object();
  for (const Doubt& doubt : profile.doubts) {
    json["doubts"].push_back({{"fact", name_of(doubt.fact)},
                              {"kind", name_of(doubt.kind)},
                              {"reason", to_one_line(doubt.reason)}});
  }
  const std::string condition = memory_condition(profile.doubts);
  if (!condition.empty()) json["fits_if"] = condition;
  return json.dump();
}

}  // namespace frazil
