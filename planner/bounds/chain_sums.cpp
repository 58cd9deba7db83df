#include "planner/bounds/chain_sums.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace frazil {
namespace {

void append(std::vector<std::int64_t>& sums, std::int64_t next) {
  sums.push_back(sums.back() + next);
}

// Sums up the least gradients of the parts added so far, in O(log n): a Fenwick tree over all parts
// in ascending order of gradients, with sums over ranges whose lengths are powers of two.
class GradientRanks {
 public:
  explicit GradientRanks(const std::vector<ChainSums::Load>& parts)
      : rank_(parts.size()), counts_(parts.size() + 1), sums_(parts.size() + 1) {
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return parts[a].updated_parameters < parts[b].updated_parameters;
    });
    for (std::size_t rank = 0; rank < order.size(); ++rank) rank_[order[rank]] = rank + 1;
  }

  void add(std::size_t part, Bytes gradients) {
    for (std::size_t at = rank_[part]; at < counts_.size(); at += at & (~at + 1)) {
      ++counts_[at];
      sums_[at] += gradients;
    }
  }

  Bytes sum_least(std::size_t count) const {
    Bytes sum;
    std::size_t at = 0;
    for (std::size_t step = std::bit_floor(counts_.size() - 1); step > 0; step /= 2) {
      if (at + step >= counts_.size() || counts_[at + step] > count) continue;
      at += step;
      count -= counts_[at];
      sum += sums_[at];
    }
    return sum;
  }

 private:
  std::vector<std::size_t> rank_;    // by part, from 1
  std::vector<std::size_t> counts_;  // by end of the range
  std::vector<Bytes> sums_;
};

// A question to sum_up(): `sum` is to become the sum of the `count` least parts, in work and in
// gradients, of the first `among` parts in descending order of work.
struct LeastParts {
  std::size_t among = 0;
  std::size_t count = 0;
  ChainSums::Load* sum = nullptr;
};

void sum_up(const std::vector<ChainSums::Load>& parts, const std::vector<Duration>& before,
            std::vector<LeastParts> asked) {
  std::stable_sort(asked.begin(), asked.end(),
                   [](const LeastParts& a, const LeastParts& b) { return a.among < b.among; });
  GradientRanks ranks(parts);
  std::size_t there = 0;
  for (const LeastParts& least : asked) {
    for (; there < least.among; ++there) ranks.add(there, parts[there].updated_parameters);
    *least.sum = {before[least.among] - before[least.among - least.count],
                  ranks.sum_least(least.count)};
  }
}

// Describes the pigeonhole bound for `devices` devices, and appends to `asked` the sums that it
// needs. `before`: work of the first parts, the parts with the most work first; `active` parts have
// a backward.
void describe_pigeonhole(const std::vector<Duration>& before, std::size_t active,
                         std::size_t devices, ChainSums::Pigeonhole& pigeonhole,
                         std::vector<LeastParts>& asked) {
  const std::size_t parts = before.size() - 1;
  const auto least = [&](std::size_t among, std::size_t k) {
    return before[among] - before[among - k];
  };
  std::size_t most = 1;
  for (std::size_t k = 1; (k - 1) * devices < parts; ++k) {
    if (least((k - 1) * devices + 1, k) > least((most - 1) * devices + 1, most)) most = k;
  }
  std::size_t among = parts;
  const auto part_of = [&](std::size_t j) { return least(j, divide_up(j, devices)); };
  if (active > 0 && part_of(active) > part_of(among)) among = active;
  const std::size_t part = divide_up(among, devices);
  pigeonhole.holders = static_cast<int>(among - devices * (part - 1));
  asked.push_back({(most - 1) * devices + 1, most, &pigeonhole.one});
  asked.push_back({among, part, &pigeonhole.even});
  asked.push_back({among, std::min(among, part + 1), &pigeonhole.more});
}

}  // namespace

ChainSums::ChainSums(const ModelProfile& profile, const Activity& activity, int micro_batch_size)
    : size_(micro_batch_size) {
  for (Sums* sums : {&forward_, &frozen_, &input_, &weight_, &update_, &parameters_, &gradients_,
                     &optimizer_, &stash_, &input_stash_, &inputs_, &weights_}) {
    sums->push_back(0);
  }
  add_layers(profile, activity);
  add_edges(profile, activity);
  add_paths();
  add_pigeonholes();
  largest_down_ = *std::max_element(down_.begin(), down_.end());
}

void ChainSums::add_layers(const ModelProfile& profile, const Activity& activity) {
  for (std::size_t l = 0; l < profile.layers.size(); ++l) {
    const Layer& layer = profile.layers[l];
    const LayerActivity& active = activity.layers[l];
    const CostSample cost = cost_at(layer, size_).cost;
    const bool backward = activity.backward(LayerId{l});
    const Duration weight =
        active.input_gradient ? cost.backward_weight : cost.backward_weight_alone;
    const bool runs = activity.has_forward(LayerId{l});
    append(forward_, runs ? (backward ? cost.forward : cost.forward_frozen).count() : 0);
    append(frozen_, runs ? cost.forward_frozen.count() : 0);
    append(input_, active.input_gradient ? cost.backward_input.count() : 0);
    append(weight_, active.weight_gradient ? weight.count() : 0);
    append(update_, active.weight_gradient ? layer.update.count() : 0);
    append(parameters_, layer.parameters.count);
    append(gradients_, active.weight_gradient ? layer.trainable().count : 0);
    append(optimizer_, active.weight_gradient ? layer.optimizer_state.count : 0);
    const std::int64_t stash = backward ? cost.kept(active.trains).count : 0;
    append(stash_, stash);
    append(input_stash_, active.weight_gradient ? 0 : stash);
    append(inputs_, active.input_gradient ? 1 : 0);
    append(weights_, active.weight_gradient ? 1 : 0);
    const auto layer_at = static_cast<int>(l);
    work_recomputing_ += work({layer_at, layer_at + 1}, true);
  }
}

void ChainSums::add_edges(const ModelProfile& profile, const Activity& activity) {
  const std::size_t cuts = profile.layers.size() + 1;
  for (auto* bytes : {&down_, &up_, &near_down_, &near_up_}) bytes->assign(cuts, Bytes{});
  joined_.assign(cuts, false);
  carries_.assign(cuts, false);
  for (std::size_t e = 0; e < profile.edges.size(); ++e) {
    const Edge& edge = profile.edges[e];
    if (activity.is_idle(edge.to)) continue;
    const Bytes size = edge.bytes(1) * size_;
    const bool carries = activity.edge_carries[e];
    for (std::size_t cut = edge.from.index() + 1; cut <= edge.to.index(); ++cut) {
      down_[cut] += size;
      if (carries) up_[cut] += size;
    }
    const std::size_t cut = edge.to.index();
    if (edge.from.index() + 1 != cut) continue;
    joined_[cut] = true;
    near_down_[cut] += size;
    if (!carries) continue;
    carries_[cut] = true;
    near_up_[cut] += size;
  }
}

void ChainSums::add_paths() {
  head_.push_back(Duration{0});
  tail_ = input_tail_ = head_;
  for (int cut = 1; cut <= layers(); ++cut) {
    const LayerSpan before{cut - 1, cut};
    const auto at = static_cast<std::size_t>(cut);
    const Duration forward{std::min(of(forward_, before), of(frozen_, before))};
    const Duration input{of(input_, before)};
    head_.push_back(joined_[at] ? head_.back() + forward : Duration{0});
    tail_.push_back(carries_[at] ? tail_.back() + input + Duration{of(weight_, before)}
                                 : Duration{0});
    input_tail_.push_back(carries_[at] ? input_tail_.back() + input : Duration{0});
  }
  const std::size_t last = head_.size() - 2;  // no stage begins after the last layer
  least_head_.assign(last + 1, head_[last]);
  least_tail_.assign(last + 1, tail_[last]);
  for (std::size_t first = last; first-- > 0;) {
    least_head_[first] = std::min(least_head_[first + 1], head_[first]);
    least_tail_[first] = std::min(least_tail_[first + 1], tail_[first]);
  }
}

void ChainSums::add_pigeonholes() {
  for (const bool one_way : {false, true}) {
    for (const bool recompute : {false, true}) {
      std::vector<Load> parts;
      std::size_t active = 0;
      const std::size_t ways = one_way ? 1 : 2;
      for (int l = 0; l < layers(); ++l) {
        const LayerSpan layer{l, l + 1};
        parts.insert(parts.end(), ways, {work(layer, recompute), updated_parameters(layer)});
        if (has_backward(layer)) active += ways;
      }
      std::stable_sort(parts.begin(), parts.end(),
                       [](const Load& a, const Load& b) { return a.work > b.work; });
      std::vector<Duration> before{Duration{0}};
      for (const Load& part : parts) before.push_back(before.back() + part.work);
      std::vector<Pigeonhole>& pigeonholes = pigeonholes_[one_way ? 1 : 0][recompute ? 1 : 0];
      pigeonholes.resize(static_cast<std::size_t>(layers()) + 1);
      std::vector<LeastParts> asked;
      for (std::size_t devices = 1; devices < pigeonholes.size(); ++devices) {
        describe_pigeonhole(before, active, devices, pigeonholes[devices], asked);
      }
      sum_up(parts, before, std::move(asked));
      if (one_way) continue;
      for (Pigeonhole& pigeonhole : pigeonholes) {
        for (Load* load : {&pigeonhole.one, &pigeonhole.even, &pigeonhole.more}) load->work /= 2;
      }
    }
  }
}

SpanTimes ChainSums::times(LayerSpan span, const Device& device, bool recompute) const {
  const auto price = [&](std::int64_t time) {
    return scale_ppm(Duration{time}, device.time_ppm) + device.action_overhead;
  };
  SpanTimes times;
  times.forward = price(of(recompute ? frozen_ : forward_, span));
  if (has_backward(span)) {
    times.backward = price(of(input_, span) + of(weight_, span));
    if (recompute) times.recompute = price(of(forward_, span));
  }
  if (of(inputs_, span) > 0) times.input = price(of(input_, span));
  if (of(weights_, span) > 0) times.weight = price(of(weight_, span));
  return times;
}

Duration ChainSums::update(LayerSpan span, const Device& device) const {
  if (!has_update(span)) return Duration{0};
  return scale_ppm(Duration{of(update_, span)}, device.time_ppm) + device.action_overhead;
}

Duration ChainSums::work(LayerSpan span, bool recompute) const {
  const std::int64_t forward = recompute ? of(frozen_, span) : of(forward_, span);
  const bool again = recompute && has_backward(span);
  return Duration{forward + (again ? of(forward_, span) : 0) + of(input_, span) +
                  of(weight_, span)};
}

}  // namespace frazil
