#include "exec/verbs/weights_keeper.h"

#include <map>
#include <string>
#include <utility>

#include "exec/checkpoint/weights_file.h"
#include "exec/models/weight_names.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Returns what the file says of itself; "statistics" names the running statistics, "unchanged" the
// tensors that training leaves alone; "part" which part of the run's model the file holds, and
// "left_out" how the names of all others begin.
std::map<std::string, std::string> describe_weights(const RunConfig& config, const ModelSpec& model,
                                                    Step done) {
  std::map<std::string, std::string> metadata{{"model", model.name},
                                              {"steps", std::to_string(done)}};
  if (model.evaluated) metadata.insert({{"part", "student"}, {"left_out", "teacher."}});
  const auto list = [&](const char* key, const std::string& name) {
    std::string& names = metadata[key];
    names += (names.empty() ? "" : ",") + name;
  };
  for (const LayerSpec& layer : model.layers) {
    for (const StatisticSpec& statistic : layer.statistics) list("statistics", statistic.name);
  }
  if (const auto file = find_file(kept_network(config.model))) {
    for (const std::string& name : file->graph.kept) list("unchanged", name);
  }
  return metadata;
}

}  // namespace

void WeightsKeeper::keep(const std::filesystem::path& folder, const RunConfig& config,
                         const ModelSpec& model, const std::vector<LayerState>& layers, Step done) {
  try {
    std::vector<const Tensors*> parameters;
    std::vector<const Tensors*> statistics;
    for (const LayerState& layer : layers) {
      parameters.push_back(&layer.parameters);
      statistics.push_back(&layer.statistics);
    }
    std::vector<NamedTensor> weights = name_weights(config.model, parameters);
    for (NamedTensor& statistic : name_statistics(model, statistics)) {
      weights.push_back(std::move(statistic));
    }
    write_weights(real_file_system(), folder / "weights.safetensors", weights,
                  describe_weights(config, model, done));
    is_kept_ = true;
  } catch (const InputError&) {
    failure_ = std::current_exception();
  }
}

void WeightsKeeper::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace frazil
