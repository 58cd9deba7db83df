#include "planner/prediction/doubts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "profiles/error.h"

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
