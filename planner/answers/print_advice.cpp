#include "planner/answers/print_advice.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace frazil {
namespace {

std::string_view name_of(Advice::Kind kind) {
  switch (kind) {
    case Advice::Kind::kMemoryOfOne:
      return "memory_of_one_device_bytes";
    case Advice::Kind::kMemoryOfEach:
      return "memory_of_every_device_bytes";
    case Advice::Kind::kMicroBatch:
      return "micro_batch_size";
    case Advice::Kind::kRecompute:
      return "recompute";
    case Advice::Kind::kFast:
      return "fast_reduction";
    case Advice::Kind::kFreeze:
      return "frozen_blocks";
    case Advice::Kind::kDevices:
      return "more_devices";
  }
  return "";
}

}  // namespace

std::string advice_json(const std::vector<Advice>& all_advice, const Cluster& cluster) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Advice& advice : all_advice) {
    list.push_back({{"change", name_of(advice.kind)},
                    {"amount", advice.amount},
                    {"text", to_text(advice, cluster)}});
  }
  return nlohmann::ordered_json{{"relief", list}}.dump();
}

std::string print_advice(const std::vector<Advice>& all_advice, const Cluster& cluster) {
  if (all_advice.empty()) return "\nno single change makes a plan fit\n";
  std::string text = "\na plan would fit with any one of\n";
  for (const Advice& advice : all_advice) text += "  " + to_text(advice, cluster) + "\n";
  return text;
}

}  // namespace frazil
