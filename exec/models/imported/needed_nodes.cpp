#include "exec/models/imported/needed_nodes.h"

#include <algorithm>

namespace frazil {
namespace {

// Adds the names of the values that the argument holds.
void add_values(const ImportedArgument& argument, std::set<std::string>& names) {
  if (argument.kind == ImportedArgument::Kind::kValue) names.insert(argument.text);
  for (const ImportedArgument& item : argument.items) add_values(item, names);
}

// Takes the results of the node out of `wanted`; returns whether one was there.
bool takes_from(std::set<std::string>& wanted, const ImportedNode& node) {
  bool is_needed = false;
  for (const ImportedResult& result : node.results) {
    for (const std::string& name : result.names) is_needed |= wanted.erase(name) > 0;
  }
  return is_needed;
}

}  // namespace

// Backwards, for a value is made before it is read; what is still wanted at the front is given.
NeededNodes find_needed_nodes(const std::vector<ImportedNode>& nodes, const std::string& value) {
  NeededNodes needed{.nodes = {}, .given = {value}};
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!takes_from(needed.given, *node)) continue;
    for (const ImportedArgument& argument : node->arguments) add_values(argument, needed.given);
    for (const auto& named : node->named_arguments) add_values(named.second, needed.given);
    needed.nodes.push_back(*node);
  }
  std::reverse(needed.nodes.begin(), needed.nodes.end());
  return needed;
}

}  // namespace frazil
