#include "planner/search/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "planner/bounds/order_table.h"
#include "planner/freezing/run_shape.h"
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

bool has_bytes(const Advice& advice) {
  return advice.kind == Advice::Kind::kMemoryOfOne || advice.kind == Advice::Kind::kMemoryOfEach;
}

// Returns the middle, but no more than the double of too little.
std::int64_t middle_of(std::int64_t too_little, std::int64_t enough) {
  const std::int64_t middle = too_little + (enough - too_little) / 2;
  return too_little > 0 && too_little < middle / 2 ? 2 * too_little : middle;
}

class AdviceFinder {
 public:
  AdviceFinder(const ModelProfile& profile, const SearchCase& question)
      : profile_(profile), question_(question) {}

  bool fits(const Advice& advice) {
    const SearchCase changed = with_advice(question_, advice);
    Evaluator evaluator({profile_, changed.cluster}, changed.options, orders_);
    const Fit fit = find_fit(evaluator, changed.options);
    missing_ = fit.missing.count;
    return fit.some_plan;
  }

  // Returns the advice with the least amount in 1 .. `most` that fits, found from a guess; none if
  // no amount fits. Requires: 0 does not fit.
  std::optional<Advice> least(Advice advice, std::int64_t guess, std::int64_t most) {
    if (most < 1) return std::nullopt;
    std::int64_t too_little = 0;
    std::int64_t enough = most + 1;
    std::int64_t missing = 0;  // with too little
    const auto try_amount = [&](std::int64_t amount) {
      advice.amount = amount;
      if (fits(advice)) {
        enough = amount;
        return;
      }
      too_little = amount;
      missing = missing_;
    };
    try_amount(std::clamp<std::int64_t>(guess, 1, most));
    // Where nothing helps this is found out at once.
    if (too_little > 0 && too_little < most) try_amount(most);
    if (enough > most) return std::nullopt;
    // The guess is mostly exact.
    if (enough - too_little > 1 && enough < most) try_amount(enough - 1);
    while (enough - too_little > 1) {
      // What the nearest plan misses may be just what is needed.
      if (has_bytes(advice) && missing > 1 && missing < enough - too_little) {
        try_amount(too_little + missing - 1);
        if (enough - too_little > 1 && missing == 1) try_amount(too_little + 1);
      }
      if (enough - too_little > 1) try_amount(middle_of(too_little, enough));
    }
    advice.amount = enough;
    return advice;
  }

  // Returns the largest micro-batch that fits, below all sizes that were offered and do not fit;
  // none if no size fits.
  std::optional<Advice> largest_micro_batch() {
    const auto& sizes = question_.options.micro_batch_sizes;
    std::int64_t too_large = *std::min_element(sizes.begin(), sizes.end());
    Advice advice{.kind = Advice::Kind::kMicroBatch, .device = {}, .amount = 1};
    if (too_large == 1 || !fits(advice)) return std::nullopt;
    std::int64_t enough = 1;
    while (too_large - enough > 1) {
      advice.amount = enough + (too_large - enough) / 2;
      (fits(advice) ? enough : too_large) = advice.amount;
    }
    advice.amount = enough;
    return advice;
  }

 private:
  const ModelProfile& profile_;
  const SearchCase& question_;
  OrderTable orders_;         // of all that is asked
  std::int64_t missing_ = 0;  // bytes, in the last search without a plan that fits
};

}  // namespace

SearchCase with_advice(const SearchCase& question, const Advice& advice) {
  SearchCase changed = question;
  const auto amount =
      static_cast<int>(std::min<std::int64_t>(advice.amount, std::numeric_limits<int>::max()));
  switch (advice.kind) {
    case Advice::Kind::kMemoryOfOne:
      add_memory(changed.cluster.devices.at(advice.device.index()), advice.amount);
      break;
    case Advice::Kind::kMemoryOfEach:
      for (Device& device : changed.cluster.devices) add_memory(device, advice.amount);
      break;
    case Advice::Kind::kMicroBatch:
      changed.options.micro_batch_sizes = {amount};
      break;
    case Advice::Kind::kRecompute:
      changed.options.recompute = advice.amount > 0;
      break;
    case Advice::Kind::kFast:
      if (advice.amount > 0) changed.options.reduction = ReductionMode::kFast;
      break;
    case Advice::Kind::kFreeze:
      for (int block = 0; block < amount; ++block) {
        changed.options.mask.set_active(BlockId{block}, false);
      }
      break;
    case Advice::Kind::kDevices:
      add_devices(changed.cluster, advice.amount);
      break;
  }
  return changed;
}

std::vector<Advice> find_advice(const ModelProfile& profile, const SearchCase& question,
                                const Ranking& ranking) {
  AdviceFinder finder(profile, question);
  std::vector<Advice> found;
  const auto keep = [&](const std::optional<Advice>& advice) {
    if (advice) found.push_back(*advice);
  };
  using Kind = Advice::Kind;
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
  keep(finder.least({Kind::kFreeze, {}, 1}, 1, find_head(profile).value));
  const auto devices = static_cast<std::int64_t>(question.cluster.devices.size());
  keep(finder.least({Kind::kDevices, {}, 1}, 1, 3 * devices));
  return found;
}

std::string to_text(const Advice& advice, const Cluster& cluster) {
  switch (advice.kind) {
    case Advice::Kind::kMemoryOfOne:
      return fmt::format("{} ({} bytes) more on {}", to_text(Bytes{advice.amount}), advice.amount,
                         cluster.devices.at(advice.device.index()).name);
    case Advice::Kind::kMemoryOfEach:
      return fmt::format("{} ({} bytes) more on every device", to_text(Bytes{advice.amount}),
                         advice.amount);
    case Advice::Kind::kMicroBatch:
      return fmt::format("micro-batch {}", advice.amount);
    case Advice::Kind::kRecompute:
      return "recompute";
    case Advice::Kind::kFast:
      return "reductions in mode fast";
    case Advice::Kind::kFreeze:
      return fmt::format("the first {} frozen", count_of(advice.amount, "block"));
    case Advice::Kind::kDevices:
      return fmt::format("{} more like the last", count_of(advice.amount, "device"));
  }
  return "";
}

std::string list_advice(const std::vector<Advice>& all_advice, const Cluster& cluster,
                        bool first_is_of_named) {
  if (all_advice.empty()) return "no single change makes a plan fit";
  std::string text;
  auto next = all_advice.begin();
  if (first_is_of_named) text = "it would fit with " + to_text(*next++, cluster);
  std::string others;
  for (; next != all_advice.end(); ++next) {
    others += (others.empty() ? "" : ", or ") + to_text(*next, cluster);
  }
  if (others.empty()) return text;
  return text + (text.empty() ? "" : "; ") + "another plan would fit with " + others;
}

// The search estimates memory, so it may propose a plan only when it is offered more memory than
// the plan needs. Such a plan misses less than the advice says and is not returned, unless it fits.
std::vector<Candidate> find_relieved(const ModelProfile& profile, const SearchCase& question,
                                     const std::vector<Advice>& all_advice) {
  using Kind = Advice::Kind;
  if (all_advice.empty()) return {};
  const Advice& first = all_advice.front();
  if (first.kind != Kind::kMemoryOfOne && first.kind != Kind::kMemoryOfEach) return {};
  SearchCase changed = with_advice(question, first);
  changed.options.keep = 1;
  const Ranking ranking = search_plans({profile, changed.cluster}, changed.options);
  ENSURE(ranking.best() != nullptr, "a change that makes a plan fit");
  const StepOptions options{.clip = question.options.clip, .overlap = question.options.overlap};
  Candidate plan =
      judge_plan(ranking.candidates.front().plan, {profile, question.cluster}, options);
  if (plan.infeasible &&
      plan.infeasible->needed.count - plan.infeasible->available.count != first.amount)
    return {};
  return {std::move(plan)};
}

std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking) {
  return explain_no_plan(profile, question, ranking, find_advice(profile, question, ranking));
}

std::string explain_no_plan(const ModelProfile& profile, const SearchCase& question,
                            const Ranking& ranking, const std::vector<Advice>& all_advice) {
  Ranking relieved;
  relieved.candidates = find_relieved(profile, question, all_advice);
  const bool is_named = !relieved.candidates.empty() && relieved.best() == nullptr;
  const bool is_one = is_named && all_advice.front().kind == Advice::Kind::kMemoryOfOne;
  const std::string by = !is_named ? "" : is_one ? "memory of one device" : "memory of each device";
  return explain_infeasible(is_named ? relieved : ranking, by) + "; " +
         list_advice(all_advice, question.cluster, is_named);
}

}  // namespace frazil
