#include "planner/partition/part_graph.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/range/iterator_range.hpp>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace frazil {
namespace {

using Classes = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

// Returns the nets over the parts' new numbers: nets within a part cost nothing and are dropped,
// equal nets add up.
std::vector<Net> renumber(const std::vector<Net>& nets, const std::vector<std::size_t>& number) {
  std::map<std::vector<std::size_t>, WorkTime> transfers;
  for (const Net& net : nets) {
    std::set<std::size_t> parts;
    for (const std::size_t part : net.parts) parts.insert(number[part]);
    if (parts.size() > 1 && net.transfer > WorkTime{0}) {
      transfers[{parts.begin(), parts.end()}] += net.transfer;
    }
  }
  std::vector<Net> result;
  for (const auto& [parts, transfer] : transfers) result.push_back({transfer, parts});
  return result;
}

void sort_once(std::vector<std::size_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Returns the class of each node: that of its colour, or one of its own.
std::vector<std::size_t> number_classes(const WorkGraph& graph, std::size_t& classes) {
  std::map<std::int64_t, std::size_t> of_colour;
  std::vector<std::size_t> number;
  classes = 0;
  for (const WorkNode& node : graph.nodes) {
    if (!node.colour) {
      number.push_back(classes++);
      continue;
    }
    const auto [place, is_new] = of_colour.try_emplace(*node.colour, classes);
    if (is_new) ++classes;
    number.push_back(place->second);
  }
  return number;
}

Classes order_classes(const WorkGraph& graph, const std::vector<std::size_t>& class_of,
                      std::size_t classes) {
  std::vector<char> has_forward(classes);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!graph.nodes[n].is_backward) has_forward[class_of[n]] = 1;
  }
  Classes order(classes);
  for (const WorkEdge& edge : graph.edges) {
    const std::size_t from = class_of[edge.from];
    const std::size_t to = class_of[edge.to];
    if (!graph.nodes[edge.to].is_backward) {
      boost::add_edge(from, to, order);
    } else if (graph.nodes[edge.from].is_backward &&
               (has_forward[from] == 0 || has_forward[to] == 0)) {
      boost::add_edge(to, from, order);
    }
  }
  return order;
}

// Numbers the classes: those that reach each other have one number, and numbers ascend along the
// order.
std::vector<std::size_t> number_components(const Classes& order, std::size_t& components) {
  std::vector<std::size_t> component(boost::num_vertices(order));
  const auto index = boost::get(boost::vertex_index, order);
  components =
      boost::strong_components(order, boost::make_iterator_property_map(component.begin(), index));
  // Tarjan's algorithm numbers the component that is first in the order last.
  for (std::size_t& number : component) number = components - 1 - number;
  return component;
}

// Merges parts one by one; numbers stay those of the first graph until the end.
class Merger {
 public:
  Merger(const PartGraph& graph, Bytes device_memory) : parts_(graph.parts), first_(graph) {
    Bytes sum;
    for (const Part& part : parts_) sum += part.memory;
    memory_matters_ = sum > device_memory;
    into_.resize(parts_.size());
    std::iota(into_.begin(), into_.end(), std::size_t{0});
    nets_ = graph.nets;
    nets_of_.resize(parts_.size());
    for (std::size_t n = 0; n < nets_.size(); ++n) {
      for (const std::size_t part : nets_[n].parts) nets_of_[part].push_back(n);
    }
  }

  PartGraph merge_all() {
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (std::size_t p = 0; p < parts_.size(); ++p) {
        const auto place = find_place(p);
        if (!place) continue;
        merge(p, *place);
        is_changed = true;
      }
    }
    return finish();
  }

 private:
  std::optional<std::size_t> find_place(std::size_t p) const {
    const Part& part = parts_[p];
    const bool is_free = part.load == WorkTime{0} && part.host_load == WorkTime{0} &&
                         (!memory_matters_ || part.memory == Bytes{0});
    if (into_[p] != p || !is_free) return std::nullopt;
    std::optional<std::size_t> place;
    if (part.before.size() == 1) {
      place = part.before.front();
    } else if (part.after.size() == 1) {
      place = part.after.front();
    } else if (part.before.empty() && !part.after.empty()) {
      if (reaches_all(part.after.front(), part.after, &Part::after)) place = part.after.front();
    } else if (part.after.empty() && !part.before.empty()) {
      if (reaches_all(part.before.back(), part.before, &Part::before)) place = part.before.back();
    }
    if (!place) return std::nullopt;
    const bool may_run = part.runs_on_device || !parts_[*place].runs_on_device;
    const bool shares_nets =
        std::all_of(nets_of_[p].begin(), nets_of_[p].end(), [&](std::size_t net) {
          return std::binary_search(nets_[net].parts.begin(), nets_[net].parts.end(), *place);
        });
    if (!may_run || !shares_nets) return std::nullopt;
    return place;
  }

  // True if all of `targets` are `start` or come after it (before it) in the order; `next` says
  // which.
  bool reaches_all(std::size_t start, const std::vector<std::size_t>& targets,
                   std::vector<std::size_t> Part::*next) const {
    std::set<std::size_t> open(targets.begin(), targets.end());
    open.erase(start);
    std::vector<char> seen(parts_.size());
    std::vector<std::size_t> stack{start};
    while (!stack.empty() && !open.empty()) {
      const std::size_t part = stack.back();
      stack.pop_back();
      for (const std::size_t other : parts_[part].*next) {
        if (std::exchange(seen[other], 1) != 0) continue;
        open.erase(other);
        stack.push_back(other);
      }
    }
    return open.empty();
  }

  void merge(std::size_t p, std::size_t place) {
    Part& from = parts_[p];
    Part& to = parts_[place];
    const auto relink = [&](std::size_t other, std::vector<std::size_t> Part::*back) {
      std::vector<std::size_t>& links = parts_[other].*back;
      links.erase(std::find(links.begin(), links.end(), p));
      if (other != place) links.push_back(place);
      sort_once(links);
    };
    for (const std::size_t other : from.after) {
      relink(other, &Part::before);
      if (other != place) to.after.push_back(other);
    }
    for (const std::size_t other : from.before) {
      relink(other, &Part::after);
      if (other != place) to.before.push_back(other);
    }
    sort_once(to.after);
    sort_once(to.before);
    to.memory += from.memory;
    to.runs_on_device = to.runs_on_device && from.runs_on_device;
    to.nodes.insert(to.nodes.end(), from.nodes.begin(), from.nodes.end());
    sort_once(to.nodes);
    from.after.clear();
    from.before.clear();
    into_[p] = place;
    for (const std::size_t net : nets_of_[p]) {  // `place` is in it already
      std::vector<std::size_t>& members = nets_[net].parts;
      members.erase(std::find(members.begin(), members.end(), p));
    }
  }

  PartGraph finish() const {
    PartGraph result;
    std::vector<std::size_t> number(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (into_[p] != p) continue;
      number[p] = result.parts.size();
      result.parts.push_back(parts_[p]);
    }
    for (Part& part : result.parts) {
      for (std::size_t& other : part.before) other = number[other];
      for (std::size_t& other : part.after) other = number[other];
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      std::size_t place = p;
      while (into_[place] != place) place = into_[place];
      number[p] = number[place];
    }
    result.nets = renumber(first_.nets, number);
    return result;
  }

  std::vector<Part> parts_;
  const PartGraph& first_;
  std::vector<Net> nets_;  // without the parts that are merged into others
  std::vector<std::vector<std::size_t>> nets_of_;
  std::vector<std::size_t> into_;  // itself: not merged
  bool memory_matters_ = false;
};

}  // namespace

PartGraph contract(const WorkGraph& graph) {
  std::size_t classes = 0;
  const std::vector<std::size_t> class_of = number_classes(graph, classes);
  const Classes order = order_classes(graph, class_of, classes);
  std::size_t components = 0;
  const std::vector<std::size_t> component_of = number_components(order, components);
  PartGraph result;
  result.parts.resize(components);
  std::vector<std::size_t> part_of;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const WorkNode& node = graph.nodes[n];
    part_of.push_back(component_of[class_of[n]]);
    Part& part = result.parts[part_of.back()];
    part.load += node.load;
    part.host_load += node.host_load;
    part.memory += node.memory;
    part.runs_on_device = part.runs_on_device && node.runs_on_device;
    part.nodes.push_back(n);
  }
  for (std::size_t from = 0; from < classes; ++from) {
    for (const std::size_t to : boost::make_iterator_range(boost::adjacent_vertices(from, order))) {
      if (component_of[from] == component_of[to]) continue;
      result.parts[component_of[from]].after.push_back(component_of[to]);
      result.parts[component_of[to]].before.push_back(component_of[from]);
    }
  }
  for (Part& part : result.parts) {
    sort_once(part.after);
    sort_once(part.before);
  }
  std::vector<Net> outputs(graph.nodes.size());
  for (const WorkEdge& edge : graph.edges) {
    outputs[edge.from].transfer = edge.transfer;
    if (outputs[edge.from].parts.empty()) outputs[edge.from].parts.push_back(edge.from);
    outputs[edge.from].parts.push_back(edge.to);
  }
  result.nets = renumber(outputs, part_of);
  return result;
}

PartGraph merge_free_parts(const PartGraph& graph, Bytes device_memory) {
  return Merger(graph, device_memory).merge_all();
}

}  // namespace frazil
