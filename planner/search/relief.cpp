#include "planner/search/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "planner/bounds/order_table.h"
#include "planner/prediction/answer_parts.h"
#include "planner/search/best_first.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostMemory = kLargestQuantity;

void add_memory(Device& device, std::int64_t bytes) {
  const std::int64_t room = std::numeric_limits<std::int64_t>::max() - device.memory_limit.count;
  device.memory_limit += Bytes{std::min(bytes, room)};
}

void add_devices(Cluster& cluster, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    Device device = cluster.devices.back();
    device.name = fmt::format("another{}", i);
    cluster.devices.push_back(std::move(device));
  }
}

class ReliefFinder {
 public:
  ReliefFinder(const ModelProfile& profile, const SearchCase& question)
      : profile_(profile), question_(question) {}

  bool fits(const Relief& relief) {
    const SearchCase changed = with_relief(question_, relief);
    Evaluator evaluator(profile_, changed.cluster, changed.options, orders_);
    return some_plan_fits(evaluator, changed.options);
  }

  // The least amount in 1 .. most that fits, from a guess; 0 does not.
  std::optional<Relief> least(Relief relief, std::int64_t guess, std::int64_t most) {
    const auto at = [&](std::int64_t amount) {
      relief.amount = amount;
      return fits(relief);
    };
    std::int64_t enough = std::clamp<std::int64_t>(guess, 1, std::max<std::int64_t>(most, 1));
    std::int64_t too_little = 0;
    if (most < 1) return std::nullopt;
    while (!at(enough)) {
      if (enough == most) return std::nullopt;
      too_little = enough;
      enough = enough > most / 2 ? most : 2 * enough;
    }
    while (enough - too_little > 1) {
      const std::int64_t middle = too_little + (enough - too_little) / 2;
      (at(middle) ? enough : too_little) = middle;
    }
    relief.amount = enough;
    return relief;
  }

  // The largest size below all that were offered: they do not fit.
  std::optional<Relief> largest_micro_batch() {
    const auto& sizes = question_.options.micro_batch_sizes;
    std::int64_t too_large = *std::min_element(sizes.begin(), sizes.end());
    Relief relief{.kind = Relief::Kind::kMicroBatch, .device = {}, .amount = 1};
    if (too_large == 1 || !fits(relief)) return std::nullopt;
    std::int64_t enough = 1;
    while (too_large - enough > 1) {
      relief.amount = enough + (too_large - enough) / 2;
      (fits(relief) ? enough : too_large) = relief.amount;
    }
    relief.amount = enough;
    return relief;
  }

 private:
  const ModelProfile& profile_;
  const SearchCase& question_;
  OrderTable orders_;  // of all that is asked
};

}  // namespace

SearchCase with_relief(const SearchCase& question, const Relief& relief) {
  SearchCase changed = question;
  const auto amount =
      static_cast<int>(std::min<std::int64_t>(relief.amount, std::numeric_limits<int>::max()));
  switch (relief.kind) {
    case Relief::Kind::kMemoryOfOne:
      add_memory(changed.cluster.devices.at(relief.device.index()), relief.amount);
      break;
    case Relief::Kind::kMemoryOfEach:
      for (Device& device : changed.cluster.devices) add_memory(device, relief.amount);
      break;
    case Relief::Kind::kMicroBatch:
      changed.options.micro_batch_sizes = {amount};
      break;
    case Relief::Kind::kRecompute:
      changed.options.recompute = relief.amount > 0;
      break;
    case Relief::Kind::kFast:
      if (relief.amount > 0) changed.options.reduction = ReductionMode::kFast;
      break;
    case Relief::Kind::kFreeze:
      for (int block = 0; block < amount; ++block) {
        changed.options.mask.set_active(BlockId{block}, false);
      }
      break;
    case Relief::Kind::kDevices:
      add_devices(changed.cluster, relief.amount);
      break;
  }
  return changed;
}

std::vector<Relief> find_relief(const ModelProfile& profile, const SearchCase& question,
                                const Ranking& ranking) {
  ReliefFinder finder(profile, question);
  std::vector<Relief> found;
  const auto keep = [&](const std::optional<Relief>& relief) {
    if (relief) found.push_back(*relief);
  };
  using Kind = Relief::Kind;
  std::int64_t missing = 1;
  DeviceId device;
  if (!ranking.candidates.empty() && ranking.candidates.front().infeasible) {
    const Infeasible& nearest = *ranking.candidates.front().infeasible;
    missing = std::max<std::int64_t>(1, (nearest.needed - nearest.available).count);
    device = nearest.device;
  }
  keep(finder.least({Kind::kMemoryOfOne, device, 1}, missing, kMostMemory));
  keep(finder.least({Kind::kMemoryOfEach, {}, 1}, missing, kMostMemory));
  keep(finder.largest_micro_batch());
  if (!question.options.recompute) keep(finder.least({Kind::kRecompute, {}, 1}, 1, 1));
  if (question.options.reduction == ReductionMode::kExact) {
    keep(finder.least({Kind::kFast, {}, 1}, 1, 1));
  }
  keep(finder.least({Kind::kFreeze, {}, 1}, 1, question.options.mask.blocks() - 1));
  const auto devices = static_cast<std::int64_t>(question.cluster.devices.size());
  keep(finder.least({Kind::kDevices, {}, 1}, 1, 3 * devices));
  return found;
}

std::string to_text(const Relief& relief, const Cluster& cluster) {
  switch (relief.kind) {
    case Relief::Kind::kMemoryOfOne:
      return fmt::format("{} ({} bytes) more on {}", to_text(Bytes{relief.amount}), relief.amount,
                         cluster.devices.at(relief.device.index()).name);
    case Relief::Kind::kMemoryOfEach:
      return fmt::format("{} ({} bytes) more on every device", to_text(Bytes{relief.amount}),
                         relief.amount);
    case Relief::Kind::kMicroBatch:
      return fmt::format("micro-batch {}", relief.amount);
    case Relief::Kind::kRecompute:
      return "recompute";
    case Relief::Kind::kFast:
      return "reductions in mode fast";
    case Relief::Kind::kFreeze:
      return fmt::format("the first {} frozen", count_of(relief.amount, "block"));
    case Relief::Kind::kDevices:
      return fmt::format("{} more like the last", count_of(relief.amount, "device"));
  }
  return "";
}

std::string list_relief(const std::vector<Relief>& reliefs, const Cluster& cluster,
                        bool first_is_of_named) {
  if (reliefs.empty()) return "no single change makes a plan fit";
  std::string text;
  auto next = reliefs.begin();
  if (first_is_of_named) text = "it would fit with " + to_text(*next++, cluster);
  std::string others;
  for (; next != reliefs.end(); ++next) {
    others += (others.empty() ? "" : ", or ") + to_text(*next, cluster);
  }
  if (others.empty()) return text;
  return text + (text.empty() ? "" : "; ") + "another plan would fit with " + others;
}

// One that the search, which bounds memory, was offered only with more than it needs misses less.
std::vector<Candidate> find_relieved(const ModelProfile& profile, const SearchCase& question,
                                     const std::vector<Relief>& reliefs) {
  using Kind = Relief::Kind;
  if (reliefs.empty()) return {};
  const Relief& first = reliefs.front();
  if (first.kind != Kind::kMemoryOfOne && first.kind != Kind::kMemoryOfEach) return {};
  SearchCase changed = with_relief(question, first);
  changed.options.keep = 1;
  const Ranking ranking = search_plans(profile, changed.cluster, changed.options);
  ENSURE(ranking.best() != nullptr, "a relief makes a plan fit");
  const StepOptions options{.clip = question.options.clip, .overlap = question.options.overlap};
  Candidate plan = judge_plan(ranking.candidates.front().plan, profile, question.cluster, options);
  ENSURE(plan.infeasible, "a plan that fits needs no relief");
  if (plan.infeasible->needed.count - plan.infeasible->available.count != first.amount) return {};
  return {std::move(plan)};
}

std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking) {
  return explain_no_plan(profile, question, ranking, find_relief(profile, question, ranking));
}

std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking, const std::vector<Relief>& reliefs) {
  Ranking relieved;
  relieved.candidates = find_relieved(profile, question, reliefs);
  const bool is_named = !relieved.candidates.empty();
  const bool is_one = is_named && reliefs.front().kind == Relief::Kind::kMemoryOfOne;
  const std::string by = !is_named ? "" : is_one ? "memory of one device" : "memory of each device";
  return explain_infeasible(is_named ? relieved : ranking, by) + "; " +
         list_relief(reliefs, question.cluster, is_named);
}

}  // namespace frazil
