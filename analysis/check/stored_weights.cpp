#include "analysis/check/stored_weights.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "analysis/check/stored_tensors.h"

namespace frazil {
namespace {

std::set<std::string> split_names(const std::string& text) {
  std::set<std::string> names;
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) names.insert(name);
  return names;
}

// Returns the names under which the file has these parameters: a checkpoint names a later use of a
// tied one "<name>@<layer>". One that it lacks keeps its name.
std::vector<std::string> find_in_file(const std::vector<std::string>& parameters,
                                      const std::set<std::string>& there) {
  std::vector<std::string> found;
  for (const std::string& name : parameters) {
    const std::string first_use = name.substr(0, name.rfind('@'));
    found.push_back(!there.contains(name) && there.contains(first_use) ? first_use : name);
  }
  return found;
}

}  // namespace

StoredWeights read_stored_weights(const std::filesystem::path& path,
                                  const std::vector<std::string>& parameters) {
  StoredTensors read = read_stored_tensors(path);
  StoredWeights weights{.format = read.metadata["format"],
                        .steps = read.metadata["steps"],
                        .part = read.metadata["part"]};
  weights.has_known_order = !parameters.empty() || read.metadata["statistics"].empty();
  const std::set<std::string> unchanged = split_names(read.metadata["unchanged"]);
  std::set<std::string> there(read.names.begin(), read.names.end());
  std::vector<std::string> order = find_in_file(parameters, there);
  if (const std::string left_out = read.metadata["left_out"]; !left_out.empty()) {
    std::erase_if(order, [&](const std::string& name) { return name.starts_with(left_out); });
  }
  if (parameters.empty()) {
    std::copy_if(read.names.begin(), read.names.end(), std::back_inserter(order),
                 [&](const std::string& name) { return !unchanged.contains(name); });
  }
  for (const std::string& name : unchanged) there.erase(name);
  weights.has_all_names = there == std::set<std::string>(order.begin(), order.end());
  if (weights.has_all_names && weights.has_known_order) weights.hash = hash_in_order(path, order);
  return weights;
}

}  // namespace frazil
