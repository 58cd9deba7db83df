#include "planner/partition/replicated_partition.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "planner/partition/boundaries.h"
#include "profiles/error.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr std::size_t kMostIdealsOfLevels = 500;  // a cubic number of stages are priced

std::int64_t divide_wide_up(Wide value, Wide by) {
  return static_cast<std::int64_t>(divide_up(value, by));
}

class ReplicaSearch {
 public:
  ReplicaSearch(const Boundaries& boundaries, const ReplicaOptions& options)
      : lattice_(boundaries.lattice),
        boundaries_(boundaries.list),
        options_(options),
        size_(boundaries_.size()),
        within_(options.levels.size()) {
    above_.resize(size_);
    for (std::size_t a = 0; a < size_; ++a) {
      for (std::size_t b = a + 1; b < size_; ++b) {
        if (is_inside(a, b)) above_[a].push_back(b);
      }
    }
    for (std::size_t level = 0; level + 1 < options.levels.size(); ++level) {
      within_[level].assign(size_ * size_, kNever.count());
      for (std::size_t a = 0; a < size_; ++a) {
        const Pipelines best = solve(level, a, size_ - 1);
        for (const std::size_t b : above_[a]) within_[level][a * size_ + b] = best.best(b).time;
      }
    }
  }

  ReplicatedPartition partition() {
    ReplicatedPartition result;
    const std::size_t top = options_.levels.size() - 1;
    result.time = Duration{solve(top, 0, size_ - 1).best(size_ - 1).time};
    result.stages = stages_of(top, 0, size_ - 1);
    result.ideals = size_;
    std::int64_t machines = 1;
    for (const ReplicaLevel& level : options_.levels) machines *= level.machines;
    result.lower_bound = lattice_.is_complete
                             ? result.time
                             : Duration{divide_wide_up(boundaries_.back().compute, machines)};
    return result;
  }

 private:
  // The last stage of the best pipeline from one ideal to another on at most so many machines.
  struct Choice {
    std::int64_t time = kNever.count();
    std::size_t from = 0;     // where the last stage begins
    std::int32_t copies = 1;  // of the last stage
  };
  struct Pipelines {
    int machines = 1;
    std::vector<Choice> choices;  // by (ideal, machines - 1)

    Choice& at(std::size_t ideal, int count) {
      return choices[ideal * static_cast<std::size_t>(machines) + static_cast<std::size_t>(count) -
                     1];
    }
    const Choice& best(std::size_t ideal) const {
      return choices[(ideal + 1) * static_cast<std::size_t>(machines) - 1];
    }
  };

  bool is_inside(std::size_t a, std::size_t b) const {
    for (std::size_t w = 0; w < lattice_.words; ++w) {
      const std::uint64_t left = lattice_.members[a * lattice_.words + w];
      if ((left & ~lattice_.members[b * lattice_.words + w]) != 0) return false;
    }
    return true;
  }

  std::int64_t compute(std::size_t level, std::size_t a, std::size_t b) const {
    if (level > 0) return within_[level - 1][a * size_ + b];
    return boundaries_[b].compute - boundaries_[a].compute;
  }

  std::int64_t stage_time(std::size_t level, std::size_t a, std::size_t b, int copies,
                          bool is_first) const {
    const std::int64_t work = compute(level, a, b);
    const std::int64_t bandwidth = options_.levels[level].bandwidth.count;
    const std::int64_t parameters = boundaries_[b].parameters - boundaries_[a].parameters;
    if (copies == 1) return work;
    if (bandwidth == 0 || parameters == 0) return divide_up<std::int64_t>(work, copies);
    const std::int64_t sharing = is_first && level > 0 ? options_.levels[level - 1].machines : 1;
    const Wide rate = static_cast<Wide>(bandwidth) * copies * sharing;
    const Wide weights = static_cast<Wide>(4) * (copies - 1) * parameters * kNanoseconds;
    return divide_wide_up(static_cast<Wide>(work) * rate + weights, rate * copies);
  }

  std::int64_t transfer_time(std::size_t level, std::size_t boundary, int copies) const {
    const std::int64_t bandwidth = options_.levels[level].bandwidth.count;
    if (bandwidth == 0) return 0;
    return divide_wide_up(static_cast<Wide>(2) * boundaries_[boundary].crossing * kNanoseconds,
                          static_cast<Wide>(bandwidth) * copies);
  }

  // Finds the best pipelines from `start` to every ideal up to `last`, shorter ones first:
  // pipelines that end where a stage begins are known when the stage is added.
  Pipelines solve(std::size_t level, std::size_t start, std::size_t last) const {
    Pipelines table{options_.levels[level].machines, {}};
    const int machines = table.machines;
    const int most_copies = options_.is_straight ? 1 : machines;
    table.choices.resize((last + 1) * static_cast<std::size_t>(machines));
    std::vector<std::size_t> ends;
    for (const std::size_t end : above_[start]) {
      if (end <= last && is_inside(end, last)) ends.push_back(end);
    }
    for (const std::size_t end : ends) {
      for (int count = 1; count <= machines; ++count) {
        Choice& choice = table.at(end, count);
        if (count > 1) choice = table.at(end, count - 1);
        if (count > most_copies) continue;
        const std::int64_t time = stage_time(level, start, end, count, true);
        if (time < choice.time) choice = {time, start, count};
      }
    }
    for (const std::size_t from : ends) {
      for (const std::size_t end : above_[from]) {
        if (end <= last && is_inside(end, last)) add_stage(level, from, end, most_copies, table);
      }
    }
    return table;
  }

  void add_stage(std::size_t level, std::size_t from, std::size_t end, int most_copies,
                 Pipelines& table) const {
    const std::int64_t work = compute(level, from, end);
    for (int copies = 1; copies <= std::min(most_copies, table.machines - 1); ++copies) {
      // Fewer machines never have a smaller time: if the stage cannot help there, it cannot help at
      // all.
      if (work / copies >= table.at(end, copies + 1).time) continue;
      std::int64_t time = stage_time(level, from, end, copies, false);
      time = std::max(time, transfer_time(level, from, copies));
      if (end + 1 < size_) time = std::max(time, transfer_time(level, end, copies));
      for (int count = copies + 1; count <= table.machines; ++count) {
        Choice& choice = table.at(end, count);
        const std::int64_t largest = std::max(time, table.at(from, count - copies).time);
        if (largest < choice.time) choice = {largest, from, copies};
      }
    }
  }

  std::vector<ReplicatedStage> stages_of(std::size_t level, std::size_t start,
                                         std::size_t last) const {
    Pipelines table = solve(level, start, last);
    std::vector<ReplicatedStage> stages;
    int machines = table.machines;
    for (std::size_t end = last; end != start;) {
      const Choice& choice = table.at(end, machines);
      ReplicatedStage stage;
      stage.machines = choice.copies;
      const bool is_first = choice.from == start;
      stage.time = Duration{stage_time(level, choice.from, end, choice.copies, is_first)};
      for (std::size_t l = 0; l < boundaries_[end].layers.size(); ++l) {
        if (boundaries_[end].layers[l] && !boundaries_[choice.from].layers[l]) {
          stage.layers.emplace_back(l);
        }
      }
      if (level > 0) stage.inner = stages_of(level - 1, choice.from, end);
      stages.push_back(std::move(stage));
      machines -= choice.copies;
      end = choice.from;
    }
    std::reverse(stages.begin(), stages.end());
    return stages;
  }

  const IdealLattice& lattice_;
  const std::vector<Boundary>& boundaries_;
  const ReplicaOptions& options_;
  std::size_t size_;
  std::vector<std::vector<std::size_t>> above_;    // larger ideals of each
  std::vector<std::vector<std::int64_t>> within_;  // of each level but the last, by (from, to)
};

}  // namespace

ReplicatedPartition partition_replicated(const ModelProfile& profile,
                                         const ReplicaOptions& options) {
  ENSURE(!options.levels.empty(), "at least one level of machines");
  for (const ReplicaLevel& level : options.levels) {
    ENSURE(level.machines >= 1, "at least one machine on every level");
  }
  int micro_batch_size = options.micro_batch_size;
  if (micro_batch_size == 0) {
    micro_batch_size = profile.layers.front().costs.front().micro_batch_size;
  }
  const std::size_t most =
      options.levels.size() > 1 ? std::min(options.ideals, kMostIdealsOfLevels) : options.ideals;
  std::optional<Boundaries> boundaries = list_boundaries(profile, micro_batch_size, most);
  if (!boundaries) {
    boundaries = list_boundaries(profile, micro_batch_size, profile.layers.size() + 1, true);
  }
  return ReplicaSearch(*boundaries, options).partition();
}

}  // namespace frazil
