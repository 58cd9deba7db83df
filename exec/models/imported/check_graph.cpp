#include "exec/models/imported/check_graph.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "exec/models/imported/needed_nodes.h"

namespace frazil {
namespace {

void check_blocks(const ImportedGraph& graph, const JsonCursor& blocks, const JsonCursor& layers) {
  std::set<std::string> names;
  for (const std::string& block : graph.blocks) {
    if (block.empty()) blocks.fail("a block without a name", "a name for each");
    if (!names.insert(block).second) {
      blocks.fail("the block " + json_string(block) + " again", "each name once");
    }
  }
  std::size_t block = 0;
  for (const ImportedLayer& layer : graph.layers) {
    const bool is_first = &layer == &graph.layers.front();
    if (layer.block == block || (!is_first && layer.block == block + 1)) {
      block = layer.block;
      continue;
    }
    layers.fail("layer " + json_string(layer.name) + " of block " + std::to_string(layer.block),
                "one of block " + std::to_string(block) +
                    (is_first ? "" : " or " + std::to_string(block + 1)));
  }
  if (block + 1 < graph.blocks.size()) {
    layers.fail("no layer of block " + json_string(graph.blocks[block + 1]), "at least one");
  }
}

void check_parameters(const ImportedGraph& graph, const JsonCursor& layers) {
  std::vector<int> uses(graph.parameters.size(), 0);
  for (const ImportedLayer& layer : graph.layers) {
    for (const std::size_t p : layer.parameters) {
      ++uses[p];
      if (!graph.parameters[p].tied.empty() && layer.parameters.size() > 1) {
        layers.fail("layer " + json_string(layer.name) + " with a tied parameter beside others",
                    "a layer of its own for each use of a tied parameter");
      }
    }
  }
  for (std::size_t p = 0; p < uses.size(); ++p) {
    if (uses[p] == 1) continue;
    layers.fail("the parameter " + json_string(graph.parameters[p].name) + " in " +
                    std::to_string(uses[p]) + " layers",
                "each parameter in one layer");
  }
}

void check_buffers(const ImportedGraph& graph, const JsonCursor& layers) {
  std::set<std::size_t> kept;
  for (const ImportedLayer& layer : graph.layers) {
    for (const std::size_t b : layer.buffers) {
      if (kept.insert(b).second) continue;
      layers.fail("the buffer " + json_string(graph.buffers[b].name) + " in several layers",
                  "each buffer in one layer");
    }
  }
}

// Two batches of one size show nothing of what depends on it.
void check_cases(const ImportedGraph& graph, const JsonCursor& witness) {
  std::set<std::int64_t> counts;
  for (const WitnessCase& one : graph.witness->cases) {
    if (!counts.insert(one.count).second) {
      witness.fail("two cases of " + std::to_string(one.count) + " samples",
                   "cases of different numbers of samples");
    }
    if (one.outputs.empty()) witness.fail("a case without outputs", "those of the model");
  }
}

// The labels of a batch are counted before there is an output.
void check_loss(const ImportedLoss& loss, const JsonCursor& at) {
  for (const std::string& name : find_needed_nodes(loss.nodes, loss.counted).given) {
    if (name == "labels" || name.starts_with('c')) continue;
    const JsonCursor counted = JsonFields(at).required("counted");
    counted.fail(counted.describe() + ", which is made of " + json_string(name),
                 "the labels, or what is made of them and of constants alone");
  }
}

}  // namespace

void check_graph(const ImportedGraph& graph, JsonFields& fields) {
  const JsonCursor layers = fields.required("layers");
  check_blocks(graph, fields.required("blocks"), layers);
  check_parameters(graph, layers);
  check_buffers(graph, layers);
  check_loss(graph.loss, fields.required("loss"));
  if (graph.witness) check_cases(graph, fields.required("witness"));
}

}  // namespace frazil
