#pragma once
// Reads PipeDream's public profiles (graph.txt) as far as tests of named planners need them: nodes
// and edges in the order of the file.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct GraphNode {
  std::string name;
  std::string description;
  Duration forward{0};
  Duration backward{0};
  Bytes activation;
  Bytes parameters;
};

struct PipeDreamGraph {
  std::vector<GraphNode> nodes;
  std::vector<std::pair<int, int>> edges;  // from, to
};

inline std::optional<std::filesystem::path> find_pipedream_graph(const std::string& model) {
  const auto path = std::filesystem::path(FRAZIL_SOURCE_FOLDER) / ".." / "shared" / "data" /
                    "pipedream" / (model + ".graph.txt");
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

// Returns the number behind `key=`, or the sum of several numbers, "[a; b]". Throws
// std::runtime_error if the key is missing.
inline double read_graph_number(const std::string& line, const std::string& key) {
  const std::size_t begin = line.rfind(key + "=");
  if (begin == std::string::npos) throw std::runtime_error("no " + key + " in " + line);
  std::string text = line.substr(begin + key.size() + 1);
  text = text.substr(0, text.find(", "));
  double sum = 0;
  for (char& c : text) {
    if (c == '[' || c == ']' || c == ';') c = ' ';
  }
  std::istringstream numbers(text);
  for (double number = 0; numbers >> number;) sum += number;
  return sum;
}

inline PipeDreamGraph read_pipedream_graph(const std::filesystem::path& path) {
  PipeDreamGraph graph;
  std::map<std::string, int> known;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t bar = line.find(" -- ");
    if (bar == std::string::npos) continue;
    if (line.front() == '\t') {
      graph.edges.emplace_back(known.at(line.substr(1, bar - 1)), known.at(line.substr(bar + 4)));
      continue;
    }
    GraphNode node;
    node.name = line.substr(0, bar);
    node.description = line.substr(bar + 4, line.find(" -- ", bar + 4) - bar - 4);
    const auto from_ms = [](double ms) { return Duration{std::llround(ms * 1e6)}; };
    node.forward = from_ms(read_graph_number(line, "forward_compute_time"));
    node.backward = from_ms(read_graph_number(line, "backward_compute_time"));
    node.activation = Bytes{std::llround(read_graph_number(line, "activation_size"))};
    node.parameters = Bytes{std::llround(read_graph_number(line, "parameter_size"))};
    known[node.name] = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back(node);
  }
  return graph;
}

}  // namespace frazil
