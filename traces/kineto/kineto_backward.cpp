#include "traces/kineto/kineto_backward.h"

#include <algorithm>
#include <array>
#include <map>

namespace frazil {
namespace {

class BackwardMatcher {
 public:
  explicit BackwardMatcher(const JoinedTrace& trace) : trace_(trace) {
    list_owners();
    find_forward_threads();
  }

  BackwardMatch match() {
    std::vector<BackwardPart> parts;  // by number of the name
    for (std::uint32_t name = 0; name < trace_.names.size(); ++name) {
      parts.push_back(part_of_node(node_name(trace_.names[name])));
    }
    BackwardMatch match;
    match.owner.assign(trace_.works.size(), -1);
    match.part.assign(trace_.works.size(), BackwardPart::kInput);
    std::size_t node = trace_.works.size();  // last node on this thread; works.size(): none
    for (std::size_t i = 0; i < trace_.works.size(); ++i) {
      const HostWork& work = trace_.works[i];
      if (node < i && trace_.works[node].thread != work.thread) node = trace_.works.size();
      match.part[i] = parts[work.name];
      if (work.kind == HostWorkKind::kBackwardNode) {
        match.owner[i] = find_owner(work);
        node = i;
      } else if (work.kind == HostWorkKind::kAccumulateGradient && node < i) {
        match.owner[i] = match.owner[node];
        if (match.part[node] == BackwardPart::kInput) match.part[node] = BackwardPart::kBoth;
      }
    }
    return match;
  }

 private:
  using Works = std::vector<std::int32_t>;

  std::int64_t sequence_of(std::int32_t work) const {
    return trace_.works[static_cast<std::size_t>(work)].sequence;
  }

  // Returns the last of `owners` whose number is at most `sequence`; -1: none.
  std::int32_t last_until(const Works& owners, std::int64_t sequence) const {
    const auto after = std::upper_bound(
        owners.begin(), owners.end(), sequence,
        [this](std::int64_t s, std::int32_t work) { return s < sequence_of(work); });
    return after == owners.begin() ? -1 : *(after - 1);
  }

  void list_owners() {
    for (std::size_t i = 0; i < trace_.works.size(); ++i) {
      const HostWork& work = trace_.works[i];
      if (work.kind != HostWorkKind::kForward || work.sequence < 0) continue;
      owners_[work.thread].push_back(static_cast<std::int32_t>(i));
    }
    for (auto& [thread, owners] : owners_) {
      const auto is_lower = [this](std::int32_t a, std::int32_t b) {
        return sequence_of(a) < sequence_of(b);
      };
      if (!std::is_sorted(owners.begin(), owners.end(), is_lower)) {
        std::stable_sort(owners.begin(), owners.end(), is_lower);
      }
    }
  }

  void find_forward_threads() {
    std::map<std::uint32_t, std::map<std::uint16_t, std::int64_t>> found;
    for (const HostWork& work : trace_.works) {
      if (work.kind != HostWorkKind::kBackwardNode) continue;
      for (const auto& [thread, owners] : owners_) {
        const std::int32_t owner = last_until(owners, work.sequence);
        const bool has_number = owner >= 0 && sequence_of(owner) == work.sequence;
        found[work.forward_thread][thread] += has_number ? 1 : 0;
      }
    }
    for (const auto& [forward_thread, counts] : found) {
      const auto most =
          std::max_element(counts.begin(), counts.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      threads_[forward_thread] = most->first;
    }
  }

  std::int32_t find_owner(const HostWork& node) const {
    const auto thread = threads_.find(node.forward_thread);
    if (thread == threads_.end() || node.sequence < 0) return -1;
    return last_until(owners_.at(thread->second), node.sequence);
  }

  const JoinedTrace& trace_;
  std::map<std::uint16_t, Works> owners_;           // by host thread, ascending numbers
  std::map<std::uint32_t, std::uint16_t> threads_;  // by "Fwd thread id"
};

template <std::size_t kCount>
bool holds_any(std::string_view text, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

template <std::size_t kCount>
bool begins_with_any(std::string_view text, const std::array<std::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.starts_with(part); });
}

}  // namespace

BackwardPart part_of_node(std::string_view node) {
  constexpr std::array<std::string_view, 2> kWeight = {"Embedding", "TBackward"};
  constexpr std::array<std::string_view, 6> kBoth = {
      "AddmmBackward", "AddmvBackward", "MmBackward", "MvBackward", "Linear", "CompiledFunction"};
  constexpr std::array<std::string_view, 9> kBothInside = {"Convolution",  "Conv2D",    "Conv3D",
                                                           "MkldnnLinear", "BatchNorm", "LayerNorm",
                                                           "GroupNorm",    "RmsNorm",   "Rnn"};
  if (node.ends_with("AccumulateGrad") || begins_with_any(node, kWeight)) {
    return BackwardPart::kWeight;
  }
  const bool is_both = begins_with_any(node, kBoth) || holds_any(node, kBothInside);
  return is_both ? BackwardPart::kBoth : BackwardPart::kInput;
}

BackwardMatch match_backward(const JoinedTrace& trace) { return BackwardMatcher(trace).match(); }

}  // namespace frazil
