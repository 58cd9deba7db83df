#include "exec/models/imported/parameter_flow.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace frazil {
namespace {

// What is known of a value: whether it depends on the layer's inputs, or on what is drawn; if not,
// which parameters pass gradients to it.
struct Flow {
  bool is_mixed = false;
  std::set<std::size_t> parameters = {};
};

class FlowFinder {
 public:
  FlowFinder(const std::vector<ResolvedNode>& nodes, const std::vector<Origin>& origins,
             std::size_t slots)
      : nodes_(nodes), flows_(slots), shared_(find_shared_memory(nodes, slots)) {
    for (std::size_t s = 0; s < origins.size(); ++s) {
      if (origins[s] == Origin::kInput) flows_[s].is_mixed = true;
      if (origins[s] == Origin::kParameter) flows_[s].parameters.insert(parameters_++);
    }
  }

  ParameterFlow find(const std::vector<std::size_t>& outputs) {
    for (std::size_t n = 0; n < nodes_.size(); ++n) follow(n);
    std::vector<int> uses(parameters_, 0);
    for (const ParameterJoin& join : found_.joins) {
      for (const std::size_t p : join.parameters) ++uses[p];
    }
    const bool is_whole = std::all_of(outputs.begin(), outputs.end(), [this](std::size_t output) {
      return flows_[output].parameters.empty();
    });
    found_.has_seams = parameters_ > 0 && is_single_ && is_whole && !share_written_memory() &&
                       std::all_of(uses.begin(), uses.end(), [](int use) { return use == 1; });
    return std::move(found_);
  }

 private:
  void follow(std::size_t index) {
    const ResolvedNode& node = nodes_[index];
    Flow made;
    made.is_mixed = node.draws();
    std::set<std::size_t> parameters;
    for (const std::size_t slot : node.arguments().reads()) {
      const Flow& read = flows_[slot];
      made.is_mixed = made.is_mixed || read.is_mixed;
      parameters.insert(read.parameters.begin(), read.parameters.end());
    }
    if (node.detaches()) parameters.clear();
    if (!made.is_mixed) {
      made.parameters = std::move(parameters);
    } else if (!parameters.empty()) {
      add_join(index, {parameters.begin(), parameters.end()});
    }
    for (const std::size_t slot : node.makes()) flows_[slot] = made;
  }

  void add_join(std::size_t index, std::vector<std::size_t> parameters) {
    const ResolvedNode& node = nodes_[index];
    const bool has_one = node.makes().size() == 1 && !node.node().results.front().is_list &&
                         !node.node().results.front().names.front().empty();
    is_single_ = is_single_ && has_one;
    if (!has_one) return;
    ParameterJoin join{
        .node = index, .output = node.makes().front(), .parameters = std::move(parameters)};
    for (std::size_t later = index + 1; later < nodes_.size(); ++later) {
      for (const std::size_t slot : nodes_[later].writes()) {
        join.stays = join.stays && shared_[slot] != shared_[join.output];
      }
    }
    found_.joins.push_back(std::move(join));
  }

  bool share_written_memory() const {
    std::set<std::size_t> written;
    for (const ResolvedNode& node : nodes_) {
      for (const std::size_t slot : node.writes()) written.insert(shared_[slot]);
    }
    std::set<std::size_t> joined;
    return std::any_of(found_.joins.begin(), found_.joins.end(), [&](const ParameterJoin& join) {
      const std::size_t memory = shared_[join.output];
      return written.contains(memory) && !joined.insert(memory).second;
    });
  }

  const std::vector<ResolvedNode>& nodes_;
  std::vector<Flow> flows_;  // by slot
  std::vector<std::size_t> shared_;
  std::size_t parameters_ = 0;
  bool is_single_ = true;  // each join has one output that is read
  ParameterFlow found_;
};

}  // namespace

ParameterFlow find_flow(const std::vector<ResolvedNode>& nodes, const std::vector<Origin>& origins,
                        std::size_t slots, const std::vector<std::size_t>& outputs) {
  return FlowFinder(nodes, origins, slots).find(outputs);
}

std::vector<std::size_t> find_shared_memory(const std::vector<ResolvedNode>& nodes,
                                            std::size_t slots) {
  std::vector<std::size_t> first(slots);
  std::iota(first.begin(), first.end(), std::size_t{0});
  const auto find = [&](std::size_t slot) {
    while (first[slot] != slot) slot = first[slot];
    return slot;
  };
  const auto join = [&](std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax({find(a), find(b)});
    first[high] = low;
  };
  for (const ResolvedNode& node : nodes) {
    if (!node.may_alias()) continue;
    for (const std::size_t read : node.arguments().reads()) {
      for (const std::size_t made : node.makes()) join(read, made);
    }
  }
  for (std::size_t slot = 0; slot < slots; ++slot) first[slot] = find(slot);
  return first;
}

}  // namespace frazil
