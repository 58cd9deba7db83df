#include "planner/partition/partition.h"

#include <algorithm>
#include <limits>

#include "profiles/error.h"

namespace frazil {
namespace {

// Answers one question: the best cut into exactly `stages` stages with no load above `bound`.
// Position i in 0..L is a cut before layer i. A stage [i, j) has a window: the largest j that
// neither its work alone (boundaries left out, so that it grows with j) nor its memory forbids.
// Windows never shrink as i grows.
class ChainTable {
 public:
  ChainTable(const ChainCosts& costs, int stages)
      : costs_(costs), stages_(stages), layers_(static_cast<int>(costs.layer.size())) {
    work_.reserve(costs.layer.size() + 1);
    work_.push_back(0);
    for (const Duration layer : costs.layer) {
      std::int64_t sum = 0;
      ENSURE(!__builtin_add_overflow(work_.back(), layer.count(), &sum),
             "loads of a chain overflow");
      work_.push_back(sum);
    }
    boundary_.assign(costs.layer.size() + 1, 0);
    for (std::size_t i = 0; i < costs.boundary.size(); ++i) {
      boundary_[i + 1] = costs.boundary[i].count();
    }
    if (!costs.back.empty()) back_.assign(costs.layer.size() + 1, 0);
    for (std::size_t i = 0; i < costs.back.size(); ++i) back_[i + 1] = costs.back[i].count();
    find_memory_windows();
  }

  // Returns a bound that some cut always keeps when memory does not matter: an even share of the
  // work, one more layer, and two boundaries.
  std::int64_t first_bound() const {
    double speeds = 0;
    for (int s = 0; s < stages_; ++s) {
      speeds += static_cast<double>(kMillion) / static_cast<double>(ppm(s));
    }
    std::int64_t largest_layer = 0;
    for (const Duration layer : costs_.layer)
      largest_layer = std::max(largest_layer, layer.count());
    const auto share = static_cast<std::int64_t>(static_cast<double>(work_.back()) / speeds);
    return share + scale_ppm(largest_layer, slowest()) + 2 * largest_boundary() + 1;
  }
  // Returns a bound that no load is above.
  std::int64_t last_bound() const {
    return scale_ppm(work_.back(), slowest()) + 2 * largest_boundary();
  }

  // True if stages whose work alone is within the bound can cover the chain.
  bool covers(std::int64_t bound) { return find_windows(bound); }

  // Returns the best cut with no load above `bound`; none if there is none.
  std::optional<ChainPartition> solve(std::int64_t bound) {
    if (!find_windows(bound)) return std::nullopt;
    find_best();
    const std::int64_t load = best(0, 0);
    if (load > bound) return std::nullopt;
    return ChainPartition{Duration{load}, smallest_cuts(load)};
  }

 private:
  std::int64_t ppm(int stage) const { return costs_.time_ppm[static_cast<std::size_t>(stage)]; }
  std::int64_t work(int first, int end) const {
    return work_[static_cast<std::size_t>(end)] - work_[static_cast<std::size_t>(first)];
  }
  std::int64_t boundary(int cut) const { return boundary_[static_cast<std::size_t>(cut)]; }
  std::int64_t load(int stage, int first, int end) const {
    const std::int64_t own = scale_ppm(work(first, end), ppm(stage));
    if (!back_.empty())
      return std::max(own, back_[static_cast<std::size_t>(first)] + boundary(end));
    return own + boundary(first) + boundary(end);
  }
  std::int64_t slowest() const {
    return *std::max_element(costs_.time_ppm.begin(), costs_.time_ppm.begin() + stages_);
  }
  std::int64_t largest_boundary() const {
    const auto largest = *std::max_element(boundary_.begin(), boundary_.end());
    if (back_.empty()) return largest;
    return std::max(largest, *std::max_element(back_.begin(), back_.end()));
  }
  std::size_t at(int stage, int cut) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(layers_ + 1) +
           static_cast<std::size_t>(cut);
  }
  std::int64_t& best(int stage, int first) { return best_[at(stage, first)]; }

  // Finds the windows by memory, which are the same whatever the bound.
  void find_memory_windows() {
    if (!costs_.memory) return;
    memory_window_.assign(at(stages_, 0), 0);
    for (int s = 0; s < stages_; ++s) {
      const int like =
          costs_.memory_like.empty() ? s : costs_.memory_like[static_cast<std::size_t>(s)];
      if (like == s) {
        fill_memory_window(s);
      } else {
        std::copy_n(memory_window_.begin() + static_cast<std::ptrdiff_t>(at(like, 0)), layers_ + 1,
                    memory_window_.begin() + static_cast<std::ptrdiff_t>(at(s, 0)));
      }
    }
  }

  void fill_memory_window(int stage) {
    const Bytes limit = costs_.memory_limit[static_cast<std::size_t>(stage)];
    int end = 0;
    for (int first = 0; first < layers_; ++first) {
      end = std::max(end, first);
      while (end < layers_ && costs_.memory(stage, stages_, first, end) <= limit) ++end;
      memory_window_[at(stage, first)] = end;
    }
  }

  // Finds the windows by work of a stage with this slowdown, by its first layer; `first` itself
  // where not one layer fits.
  void find_work_window(std::int64_t slowdown, std::int64_t bound) {
    work_window_.resize(static_cast<std::size_t>(layers_));
    int end = 0;
    for (int first = 0; first < layers_; ++first) {
      end = std::max(end, first);
      while (end < layers_ && scale_ppm(work(first, end + 1), slowdown) <= bound) ++end;
      work_window_[static_cast<std::size_t>(first)] = end;
    }
  }

  // Fills window_ and the range of starts of each stage, narrowed from both sides; false when the
  // windows alone cannot cover the chain.
  bool find_windows(std::int64_t bound) {
    // Each stage before and after needs at least one layer.
    window_.resize(at(stages_, 0));
    const int spare = layers_ - stages_;
    for (int s = 0; s < stages_; ++s) {
      if (s == 0 || ppm(s) != ppm(s - 1)) find_work_window(ppm(s), bound);
      for (int first = s; first <= s + spare; ++first) {
        int end = std::min(work_window_[static_cast<std::size_t>(first)], s + spare + 1);
        if (!memory_window_.empty()) end = std::min(end, memory_window_[at(s, first)]);
        window_[at(s, first)] = end;
      }
    }
    earliest_.assign(static_cast<std::size_t>(stages_) + 1, layers_);
    latest_.assign(static_cast<std::size_t>(stages_) + 1, 0);
    for (int s = stages_ - 1; s >= 0; --s) {
      int& first = earliest_[static_cast<std::size_t>(s)];
      const int next = earliest_[static_cast<std::size_t>(s) + 1];
      first = s;
      while (first <= s + spare && window_[at(s, first)] < std::max(next, first + 1)) ++first;
      if (first > s + spare) return false;
    }
    for (int s = 0; s < stages_; ++s) {
      const int last_start = layers_ - (stages_ - s - 1);
      latest_[static_cast<std::size_t>(s) + 1] =
          std::min(window_[at(s, latest_[static_cast<std::size_t>(s)])], last_start);
    }
    return earliest_[0] == 0;
  }

  // Fills best(s, i), the least possible largest load when stages s, s + 1, ... hold layers i ..;
  // kNever outside the ranges.
  void find_best() {
    best_.assign(at(stages_ + 1, 0), kNever.count());
    best(stages_, layers_) = 0;
    for (int s = stages_ - 1; s >= 0; --s) {
      const int next_earliest = earliest_[static_cast<std::size_t>(s) + 1];
      for (int first = earliest_[static_cast<std::size_t>(s)];
           first <= latest_[static_cast<std::size_t>(s)]; ++first) {
        std::int64_t least = kNever.count();
        const int window = window_[at(s, first)];
        for (int end = std::max(first + 1, next_earliest); end <= window; ++end) {
          if (scale_ppm(work(first, end), ppm(s)) >= least) break;
          least = std::min(least, std::max(load(s, first, end), best(s + 1, end)));
        }
        best(s, first) = least;
      }
    }
  }

  std::vector<LayerId> smallest_cuts(std::int64_t load_limit) {
    std::vector<LayerId> cuts;
    int first = 0;
    for (int s = 0; s + 1 < stages_; ++s) {
      int end = first + 1;
      while (load(s, first, end) > load_limit || best(s + 1, end) > load_limit) ++end;
      ENSURE(end <= window_[at(s, first)], "the best cut lies outside its window");
      cuts.emplace_back(end);
      first = end;
    }
    return cuts;
  }

  const ChainCosts& costs_;
  int stages_;
  int layers_;
  std::vector<std::int64_t> work_;      // of the layers before a cut
  std::vector<std::int64_t> boundary_;  // at a cut; 0 at both ends of the chain
  std::vector<std::int64_t> back_;      // likewise; empty where transfers block
  std::vector<int> memory_window_;      // by (stage, first): largest end; empty without limits
  std::vector<int> work_window_;        // by first: largest end whose work is within the bound
  std::vector<int> window_;             // by (stage, first): within both
  std::vector<int> earliest_, latest_;  // first layer of a stage
  std::vector<std::int64_t> best_;      // by (stage, first)
};

void check(const ChainCosts& costs, int stages) {
  const std::size_t layers = costs.layer.size();
  ENSURE(layers >= 1 && costs.boundary.size() + 1 == layers, "a boundary between any two layers");
  ENSURE(costs.back.empty() || costs.back.size() + 1 == layers,
         "a boundary between any two layers");
  ENSURE(stages >= 1 && costs.time_ppm.size() >= static_cast<std::size_t>(stages),
         "a slowdown for each stage");
  ENSURE(!costs.memory || costs.memory_limit.size() >= static_cast<std::size_t>(stages),
         "a memory limit for each stage");
}

}  // namespace

std::optional<ChainPartition> partition_into(const ChainCosts& costs, int stages) {
  check(costs, stages);
  if (costs.layer.size() < static_cast<std::size_t>(stages)) return std::nullopt;
  ChainTable table(costs, stages);
  const std::int64_t last = table.last_bound();
  if (!table.covers(last)) return std::nullopt;
  for (std::int64_t bound = table.first_bound(); bound < last; bound = 2 * bound) {
    if (auto partition = table.solve(bound)) return partition;
  }
  return table.solve(last);
}

}  // namespace frazil
