#include "planner/answers/print_relief.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace frazil {
namespace {

std::string_view name_of(Relief::Kind kind) {
  switch (kind) {
    case Relief::Kind::kMemoryOfOne:
      return "memory_of_one_device_bytes";
    case Relief::Kind::kMemoryOfEach:
      return "memory_of_every_device_bytes";
    case Relief::Kind::kMicroBatch:
      return "micro_batch_size";
    case Relief::Kind::kRecompute:
      return "recompute";
    case Relief::Kind::kFast:
      return "fast_reduction";
    case Relief::Kind::kFreeze:
      return "frozen_blocks";
    case Relief::Kind::kDevices:
      return "more_devices";
  }
  return "";
}

}  // namespace

std::string relief_json(const std::vector<Relief>& reliefs, const Cluster& cluster) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Relief& relief : reliefs) {
    list.push_back({{"change", name_of(relief.kind)},
                    {"amount", relief.amount},
                    {"text", to_text(relief, cluster)}});
  }
  return nlohmann::ordered_json{{"relief", list}}.dump();
}

std::string print_relief(const std::vector<Relief>& reliefs, const Cluster& cluster) {
  if (reliefs.empty()) return "\nno single change makes a plan fit\n";
  std::string text = "\na plan would fit with any one of\n";
  for (const Relief& relief : reliefs) text += "  " + to_text(relief, cluster) + "\n";
  return text;
}

}  // namespace frazil
