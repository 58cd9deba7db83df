#pragma once
// Imports small traces and returns the times of their layers, in ns.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/traces/kineto/kineto_text.h"
#include "traces/kineto/kineto_profile.h"

namespace frazil {

// Imports one trace per rank; of one sample if the options do not say how many.
inline KinetoImport import_texts(const std::vector<std::string>& texts,
                                 KinetoOptions options = {}) {
  if (!options.micro_batch_size) options.micro_batch_size = 1;
  std::vector<std::unique_ptr<TraceFile>> files;
  std::vector<std::filesystem::path> paths;
  for (const std::string& text : texts) {
    files.push_back(
        std::make_unique<TraceFile>(text, "rank" + std::to_string(files.size()) + ".json"));
    paths.push_back(files.back()->path());
  }
  return import_kineto(paths, options);
}

inline KinetoImport import_text(const std::string& text, const KinetoOptions& options = {}) {
  return import_texts({text}, options);
}

struct LayerTimes {
  std::string name;
  std::int64_t forward = 0;
  std::int64_t input = 0;
  std::int64_t weight = 0;

  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
  friend std::ostream& operator<<(std::ostream& out, const LayerTimes& times) {
    return out << times.name << " F " << times.forward << " I " << times.input << " W "
               << times.weight;
  }
};

inline std::vector<LayerTimes> times_of(const KinetoImport& import) {
  std::vector<LayerTimes> times;
  for (const Layer& layer : import.profile.layers) {
    const CostSample& cost = layer.costs.front();
    times.push_back({layer.name, cost.forward.count(), cost.backward_input.count(),
                     cost.backward_weight.count()});
  }
  return times;
}

}  // namespace frazil
