#include "profiles/import/pipedream_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "profiles/import/decimal.h"
#include "profiles/import/file_lines.h"
#include "profiles/import/topological_order.h"

namespace frazil {
namespace {

constexpr std::string_view kSeparator = " -- ";
constexpr std::string_view kNodeForm =
    "`node -- description -- forward_compute_time=ms, backward_compute_time=ms, "
    "activation_size=bytes, parameter_size=bytes`";
constexpr int kMillisecondDecimals = 6;  // down to a nanosecond

struct Node {
  std::string id;
  std::string description;
  int line = 0;
  Duration forward{0};
  Duration backward{0};
  std::vector<Bytes> activation;
  Bytes parameters;
};

// An edge: `to` reads what `from` made.
struct Reading {
  std::string from;
  std::string to;
  int line = 0;
};

// Orders nodes by name, "node9" before "node10".
bool comes_before(const Node& a, const Node& b) {
  return std::pair(a.id.size(), a.id) < std::pair(b.id.size(), b.id);
}

// Reads the nodes and edges of the file, each line by itself.
class GraphReader {
 public:
  GraphReader(std::string_view text, const std::string& file) : file_(file) {
    FileLines lines(text, file);
    while (const auto line = lines.next()) {
      line_ = line->number;
      const bool is_indented = line->text.front() == ' ' || line->text.front() == '\t';
      is_indented ? read_edge(trim(line->text)) : read_node(trim(line->text));
    }
    std::sort(nodes.begin(), nodes.end(), comes_before);
  }

  std::vector<Node> nodes;
  std::vector<Reading> edges;

 private:
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, line_, found, expected);
  }

  std::string read_id(std::string_view text) const {
    const std::string_view id = trim(text);
    if (id.empty() || id.find_first_of(" \t") != std::string_view::npos) {
      fail(fmt::format("{} for a node", quote(id)), "a name without blanks");
    }
    return std::string(id);
  }

  void read_edge(std::string_view text) {
    const std::size_t middle = text.find(kSeparator);
    if (middle == std::string_view::npos) fail(quote(text), "an edge `node -- node`");
    if (edges.size() == kMostImportedEdges) {
      fail("one more edge", fmt::format("at most {}", kMostImportedEdges));
    }
    edges.push_back(
        {read_id(text.substr(0, middle)), read_id(text.substr(middle + kSeparator.size())), line_});
    const Reading& edge = edges.back();
    if (edge.from == edge.to) fail(fmt::format("{} reading itself", quote(edge.to)), "no cycle");
    const auto [first, is_new] = edge_lines_.try_emplace({edge.from, edge.to}, line_);
    if (!is_new) {
      fail(fmt::format("the edge {} again", quote(text)),
           fmt::format("it once (first on line {})", first->second));
    }
  }

  // The node stands first, the measured values last, and all text between is the description.
  void read_node(std::string_view text) {
    std::size_t last = text.rfind(kSeparator);
    std::string_view rest = text;
    if (last != std::string_view::npos &&
        text.substr(last + kSeparator.size()).starts_with("stage_id=")) {
      rest = text.substr(0, last);
      last = rest.rfind(kSeparator);
    }
    const std::size_t first = text.find(kSeparator);
    if (last == std::string_view::npos || last == first) fail(quote(text), std::string(kNodeForm));
    if (nodes.size() == kMostImportedLayers) {
      fail("one more node", fmt::format("at most {}", kMostImportedLayers));
    }
    Node node;
    node.line = line_;
    node.id = read_id(text.substr(0, first));
    node.description = trim(
        rest.substr(first + kSeparator.size(), last - std::min(last, first + kSeparator.size())));
    read_values(rest.substr(last + kSeparator.size()), node);
    const auto [line, is_new] = node_lines_.try_emplace(node.id, line_);
    if (!is_new) {
      fail(fmt::format("the node {} again", quote(node.id)),
           fmt::format("it once (first on line {})", line->second));
    }
    nodes.push_back(std::move(node));
  }

  void read_values(std::string_view text, Node& node) const {
    constexpr std::array kKeys = {"forward_compute_time", "backward_compute_time",
                                  "activation_size", "parameter_size"};
    std::map<std::string_view, std::string_view> values;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(", "), text.size());
      const std::string_view field = text.substr(0, end);
      text.remove_prefix(std::min(end + 2, text.size()));
      const std::size_t equals = field.find('=');
      const std::string_view key = field.substr(0, equals);
      if (equals == std::string_view::npos ||
          std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
        fail(quote(field), std::string(kNodeForm));
      }
      if (!values.try_emplace(key, field.substr(equals + 1)).second) {
        fail(fmt::format("{} again", quote(key)), "it once");
      }
    }
    for (const char* const key : kKeys) {
      if (!values.contains(key))
        fail(fmt::format("a node without {}", quote(key)), "it to be given");
    }
    node.forward = read_time(kKeys[0], values[kKeys[0]]);
    node.backward = read_time(kKeys[1], values[kKeys[1]]);
    node.activation = read_sizes(kKeys[2], values[kKeys[2]]);
    node.parameters = read_size(kKeys[3], values[kKeys[3]]);
  }

  Duration read_time(std::string_view key, std::string_view text) const {
    const auto time = scale_decimal(trim(text), kMillisecondDecimals, Rounding::kExact);
    if (!time) {
      fail(fmt::format("{} {}", key, quote(text)),
           fmt::format("ms from 0 to {} with at most six decimals", kLargestQuantity / 1'000'000));
    }
    return Duration{*time};
  }

  Bytes read_size(std::string_view key, std::string_view text) const {
    const auto size = scale_decimal(trim(text), 0, Rounding::kExact);
    if (!size) {
      fail(fmt::format("{} {}", key, quote(text)),
           fmt::format("whole bytes from 0 to {}", kLargestQuantity));
    }
    return {*size};
  }

  std::vector<Bytes> read_sizes(std::string_view key, std::string_view text) const {
    text = trim(text);
    if (!text.starts_with('[')) return {read_size(key, text)};
    if (!text.ends_with(']'))
      fail(fmt::format("{} {}", key, quote(text)), "a list that ends in `]`");
    text = text.substr(1, text.size() - 2);
    std::vector<Bytes> sizes;
    while (true) {
      const std::size_t end = text.find(';');
      sizes.push_back(read_size(key, text.substr(0, end)));
      if (end == std::string_view::npos) return sizes;
      text.remove_prefix(end + 1);
    }
  }

  const std::string& file_;
  int line_ = 0;
  std::map<std::string, int> node_lines_;
  std::map<std::pair<std::string, std::string>, int> edge_lines_;
};

bool is_called_input(std::string_view description) {
  if (!description.starts_with("Input")) return false;
  return description.find_first_not_of("0123456789", 5) == std::string_view::npos;
}

class ProfileMaker {
 public:
  ProfileMaker(GraphReader& graph, const std::string& file, const ImportOptions& options)
      : graph_(graph), file_(file), options_(options) {
    const std::size_t nodes = graph.nodes.size();
    for (std::size_t n = 0; n < nodes; ++n) numbers_[graph.nodes[n].id] = n;
    read_by_.resize(nodes);
    reads_.resize(nodes);
    for (const Reading& edge : graph.edges) {
      const std::size_t from = number_of(edge.from, edge.line);
      const std::size_t to = number_of(edge.to, edge.line);
      edges_.emplace_back(from, to);
      read_by_[from].push_back(to);
      reads_[to].push_back(from);
    }
    for (std::size_t n = 0; n < nodes; ++n) {
      is_input_.push_back(reads_[n].empty() && is_called_input(graph.nodes[n].description) ? 1 : 0);
    }
  }

  ImportedProfile make() {
    ModelProfile& profile = imported_.profile;
    profile.model = options_.model;
    profile.provenance["source"] = "PipeDream graph.txt";
    add_inputs();
    add_layers();
    add_edges();
    split_by_rule(imported_);
    profile.doubts = {
        {DoubtedFact::kOptimizerState, DoubtKind::kDefault, "none, for the graph has none"},
        {DoubtedFact::kUpdate, DoubtKind::kDefault, "none, for the graph has none"},
        {DoubtedFact::kStash, DoubtKind::kLowerBound, "each layer's input alone"}};
    validate(profile, file_);
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  std::size_t number_of(const std::string& id, int line) const {
    const auto place = numbers_.find(id);
    if (place == numbers_.end()) {
      throw InputError(file_, line, fmt::format("the unknown node {}", quote(id)),
                       "one of the file's nodes");
    }
    return place->second;
  }

  Bytes per_sample(Bytes bytes) const {
    const std::int64_t samples = options_.micro_batch_size;
    return {bytes.count / samples + (bytes.count % samples != 0 ? 1 : 0)};
  }

  Bytes sum_of(const std::vector<Bytes>& tensors, int line) const {
    Bytes sum;
    for (const Bytes bytes : tensors) add(sum, bytes, line);
    return sum;
  }

  void add(Bytes& sum, Bytes more, int line) const {
    sum += more;
    if (sum.count > kLargestQuantity) {
      throw InputError(file_, line, "sizes whose sum is more than 2^53 bytes", "a smaller model");
    }
  }

  void add_inputs() {
    Duration loading{0};
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (is_input_[n] == 0) continue;
      const Node& node = graph_.nodes[n];
      loading = std::min(loading + node.forward + node.backward, Duration{kLargestQuantity});
      for (const Bytes bytes : node.activation) {
        add(imported_.profile.input_bytes_per_sample, per_sample(bytes), node.line);
      }
    }
    imported_.profile.provenance["data_loading_ns"] = fmt::format("{}", loading.count());
  }

  void add_layers() {
    const TopologicalOrder order = order_topologically(graph_.nodes.size(), edges_);
    if (!order.cycle.empty()) refuse_cycle(order.cycle);
    layer_.resize(graph_.nodes.size());
    for (const std::size_t n : order.nodes) {
      if (is_input_[n] != 0) continue;
      layer_[n] = LayerId{imported_.profile.layers.size()};
      add_layer(n);
    }
    std::vector<Layer>& layers = imported_.profile.layers;
    if (layers.empty()) throw InputError(file_, 0, "no node but inputs", "at least one layer");
    const bool has_loss = std::any_of(layers.begin(), layers.end(),
                                      [](const Layer& layer) { return layer.has_loss; });
    if (!has_loss) layers.back().has_loss = true;
  }

  // Names the cycle's edge that came last in the file: it closed the cycle.
  [[noreturn]] void refuse_cycle(const std::vector<std::size_t>& cycle) const {
    const auto last = std::max_element(
        cycle.begin(), cycle.end(),
        [&](std::size_t a, std::size_t b) { return graph_.edges[a].line < graph_.edges[b].line; });
    const Reading& edge = graph_.edges[*last];
    throw InputError(file_, edge.line,
                     fmt::format("the edge `{} -- {}`, which closes a cycle of {} nodes", edge.from,
                                 edge.to, cycle.size()),
                     "a graph without cycles");
  }

  void add_layer(std::size_t n) {
    const Node& node = graph_.nodes[n];
    Layer layer;
    layer.name = node.description.empty() ? node.id : node.id + " " + node.description;
    layer.block = BlockId{imported_.profile.blocks.size()};
    layer.parameters = node.parameters;
    layer.has_loss = read_by_[n].empty() && !node.description.starts_with("__getitem__");
    CostSample cost;
    cost.micro_batch_size = options_.micro_batch_size;
    cost.forward = cost.forward_frozen = node.forward;
    cost.backward_input = node.backward;
    for (const std::size_t from : reads_[n]) {
      add(cost.stash, sum_of(graph_.nodes[from].activation, node.line), node.line);
    }
    layer.costs = {cost};
    imported_.profile.blocks.push_back(layer.name);
    imported_.profile.layers.push_back(std::move(layer));
  }

  void add_edges() {
    std::vector<Edge>& edges = imported_.profile.edges;
    bool is_rounded = false;
    for (const auto& [from, to] : edges_) {
      if (is_input_[from] != 0) continue;
      Edge edge{.from = layer_[from], .to = layer_[to], .kind = {}, .tensor_bytes_per_sample = {}};
      for (const Bytes bytes : graph_.nodes[from].activation) {
        edge.tensor_bytes_per_sample.push_back(per_sample(bytes));
        is_rounded = is_rounded || bytes.count % options_.micro_batch_size != 0;
      }
      edges.push_back(std::move(edge));
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    if (is_rounded) note("tensors of no whole number of bytes a sample are rounded up");
  }

  const GraphReader& graph_;
  const std::string& file_;
  const ImportOptions& options_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::pair<std::size_t, std::size_t>> edges_;  // as graph_.edges
  std::vector<std::vector<std::size_t>> read_by_;
  std::vector<std::vector<std::size_t>> reads_;
  std::vector<char> is_input_;
  std::vector<LayerId> layer_;
  ImportedProfile imported_;
};

}  // namespace

ImportedProfile parse_pipedream_graph(std::string_view text, const std::string& file,
                                      const ImportOptions& options) {
  GraphReader graph(text, file);
  return ProfileMaker(graph, file, options).make();
}

}  // namespace frazil
