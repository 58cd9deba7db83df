#include "profiles/import/work_graph_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "profiles/import/decimal.h"
#include "profiles/import/topological_order.h"
#include "profiles/json.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr int kMostDevices = 1'000'000;
constexpr int kFemtosecondDecimals = 12;  // of a millisecond

WorkTime read_time(const JsonCursor& number) {
  const auto time = scale_decimal(number.number_text(), kFemtosecondDecimals, Rounding::kNearest);
  if (!time) number.fail(number.describe(), "ms from 0 to 9007");
  return WorkTime{*time};
}

Bytes read_bytes(const JsonCursor& number, Rounding rounding) {
  const auto bytes = scale_decimal(number.number_text(), 0, rounding);
  if (!bytes) {
    number.fail(number.describe(), fmt::format("bytes from 0 to {}", kLargestQuantity));
  }
  return {*bytes};
}

// Reads `true`, `false`, 1 or 0.
bool read_flag(const JsonCursor& value) {
  return value.is_integer() ? value.integer(0, 1) == 1 : value.boolean();
}

class WorkGraphReader {
 public:
  WorkGraph read(const JsonCursor& root) {
    JsonFields fields(root);
    graph_.device_memory = read_bytes(fields.required("maxSizePerFPGA"), Rounding::kDown);
    graph_.devices = static_cast<int>(fields.required("maxFPGAs").integer(0, kMostDevices));
    graph_.hosts = static_cast<int>(fields.required("maxCPUs").integer(0, kMostDevices));
    const JsonCursor nodes = fields.required("nodes");
    for (const JsonCursor& node : nodes.items()) read_node(node);
    if (graph_.nodes.empty()) nodes.fail("no node", "at least one");
    const std::vector<JsonCursor> edges = fields.required("edges").items();
    for (const JsonCursor& edge : edges) read_edge(edge);
    refuse_cycle(edges);
    return std::move(graph_);
  }

 private:
  void read_node(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    WorkNode node;
    const JsonCursor id = fields.required("id");
    node.id = id.integer(-kLargestQuantity, kLargestQuantity);
    if (!numbers_.try_emplace(node.id, graph_.nodes.size()).second) {
      id.fail(id.describe() + " again", "ids that differ");
    }
    const auto name = fields.optional("name");
    node.name = name ? name->text() : fmt::format("{}", node.id);
    node.runs_on_device = read_flag(fields.required("supportedOnFpga"));
    const JsonCursor load = fields.required("fpgaLatency");
    const JsonCursor host_load = fields.required("cpuLatency");
    node.load = read_time(load);
    node.host_load = read_time(host_load);
    add(load, node.load);
    add(host_load, node.host_load);
    const JsonCursor size = fields.required("size");
    node.memory = read_bytes(size, Rounding::kUp);
    memory_ += node.memory;
    if (memory_.count > kLargestQuantity) {
      size.fail("nodes of more than 2^53 bytes", "a smaller graph");
    }
    node.is_backward = read_flag(fields.required("isBackwardNode"));
    if (const auto colour = fields.optional("colorClass")) {
      node.colour = colour->integer(-kLargestQuantity, kLargestQuantity);
    }
    graph_.nodes.push_back(std::move(node));
  }

  void add(const JsonCursor& place, WorkTime time) {
    sum_ += time;
    if (sum_ > kLongestWork) place.fail("times whose sum is more than 2^62 fs", "a shorter graph");
  }

  std::size_t read_end(const JsonCursor& id) const {
    const auto place = numbers_.find(id.integer(-kLargestQuantity, kLargestQuantity));
    if (place == numbers_.end()) id.fail(id.describe(), "the id of a node");
    return place->second;
  }

  void read_edge(const JsonCursor& cursor) {
    JsonFields fields(cursor);
    WorkEdge edge;
    edge.from = read_end(fields.required("sourceId"));
    const JsonCursor to = fields.required("destId");
    edge.to = read_end(to);
    if (edge.from == edge.to) to.fail("a node that reads itself", "no cycle");
    if (graph_.nodes[edge.from].is_backward && !graph_.nodes[edge.to].is_backward) {
      to.fail("an edge from a backward to a forward node", "none of that kind");
    }
    if (!ends_.emplace(edge.from, edge.to).second) cursor.fail("an edge again", "each edge once");
    const JsonCursor cost = fields.required("cost");
    edge.transfer = read_time(cost);
    const auto [first, is_new] = transfers_.try_emplace(edge.from, edge.transfer);
    if (!is_new && first->second != edge.transfer) {
      cost.fail(cost.describe(), fmt::format("the cost of the other edges from node {}",
                                             graph_.nodes[edge.from].id));
    }
    add(cost, 2 * edge.transfer);
    graph_.edges.push_back(edge);
  }

  void refuse_cycle(const std::vector<JsonCursor>& cursors) const {
    std::vector<std::pair<std::size_t, std::size_t>> edges;
    edges.reserve(graph_.edges.size());
    for (const WorkEdge& edge : graph_.edges) edges.emplace_back(edge.from, edge.to);
    const TopologicalOrder order = order_topologically(graph_.nodes.size(), edges);
    if (order.cycle.empty()) return;
    const std::size_t last = *std::max_element(order.cycle.begin(), order.cycle.end());
    cursors[last].fail(fmt::format("an edge that closes a cycle of {} nodes", order.cycle.size()),
                       "a graph without cycles");
  }

  WorkGraph graph_;
  std::map<std::int64_t, std::size_t> numbers_;
  std::set<std::pair<std::size_t, std::size_t>> ends_;
  std::map<std::size_t, WorkTime> transfers_;
  WorkTime sum_{0};
  Bytes memory_;
};

}  // namespace

WorkGraph parse_work_graph(std::string_view text, const std::string& file) {
  return WorkGraphReader().read(parse_json(text, file));
}

WorkGraph read_work_graph(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  // A line of PipeDream's profiler: "node1 -- Linear(...) -- forward_compute_time=...".
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  if (line.starts_with("node") && line.find(" -- ") != std::string_view::npos) {
    throw InputError(path.string(), 1, "a graph of PipeDream's profiler",
                     "a work graph in JSON; frazil import pipedream makes a profile of this one, "
                     "for --profile");
  }
  return parse_work_graph(text, path.string());
}

}  // namespace frazil
