#include "analysis/ablation/ablation_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/prediction/answer_parts.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Names the runs beside which other programs were busy, of which there may be many.
std::string tell_disturbed(const Ablation& ablation) {
  constexpr std::size_t kMostNamed = 4;
  std::size_t count = 0;
  std::string named;
  for (const PairResult& result : ablation.results) {
    if (!is_disturbed(result) || ++count > kMostNamed) continue;
    named += fmt::format("{}{} with seed {} ({:.2f})", named.empty() ? "" : ", ",
                         facts_of(result.pair.arm).name, result.pair.seed, *result.foreign_cores);
  }
  if (count == 0) return "";
  return fmt::format(
      "other programs kept more than {} cores busy beside {} of {} runs, whose times may be too "
      "long: {}{}",
      kMostForeignCoresOfPair, count, ablation.results.size(), named,
      count > kMostNamed ? ", ..." : "");
}

// Names the arms whose accuracy is that of `all` because their weights are.
std::string tell_equal_weights(const Ablation& ablation) {
  std::string names;
  for (const ArmRow& row : ablation.rows) {
    if (!row.has_weights_of_all) continue;
    names += (names.empty() ? "" : ", ") + std::string(facts_of(row.arm).name);
  }
  if (names.empty()) return "";
  return "with the weights of all under every seed, bit for bit, ended: " + names;
}

// Says where the devices were, unless they were threads of one process.
std::string tell_devices(const AblationInputs& inputs) {
  std::string told;
  if (inputs.processes > 1) told = fmt::format("devices in {} processes", inputs.processes);
  if (inputs.device == "cpu") return told;
  told += fmt::format("{}devices are of kind {}", told.empty() ? "" : "; ", inputs.device);
  return inputs.gpus.empty() ? told : fmt::format("{}: {}", told, inputs.gpus);
}

// Speaks of arms without freezing that were measured to be faster than the one that all are
// compared with, which was chosen by prediction. One seed, which has no interval, shows no such
// thing, and neither does an interval that holds 1.
std::string tell_faster_base(const Ablation& ablation) {
  std::string names;
  for (const ArmRow& row : ablation.rows) {
    const bool rivals = row.arm == Arm::kOneDevice || row.arm == Arm::kDataParallel;
    if (!rivals || !row.speed || !row.speed->interval || row.speed->interval->low <= 1) continue;
    names += fmt::format("{}{} ({:.3f}x)", names.empty() ? "" : ", ", facts_of(row.arm).name,
                         row.speed->mean);
  }
  if (names.empty()) return "";
  return "unfrozen is the best plan as predicted; measured to be faster: " + names;
}

// Says by which versions of Frazil the runs were made, if not all by the same.
std::string tell_versions(const Ablation& ablation) {
  std::map<std::string, std::int64_t> runs;
  for (const PairResult& result : ablation.results) {
    ++runs[result.frazil_version.empty() ? "an unknown version" : result.frazil_version];
  }
  if (runs.size() < 2) return "";
  std::string told;
  for (const auto& [version, count] : runs) {
    told += fmt::format("{}{} ({})", told.empty() ? "" : ", ", version, count_of(count, "run"));
  }
  return "runs of several versions of Frazil stand beside each other: " + told;
}

bool freezes(const PairResult& result) {
  return std::any_of(result.phases.begin(), result.phases.end(), [](const PairPhase& phase) {
    return phase.mask.find('0') != std::string::npos;
  });
}

// Says if the policy has frozen nothing under any seed.
std::string tell_idle_policy(const Ablation& ablation) {
  const std::vector<const PairResult*> all = results_of(ablation.results, Arm::kAll);
  const bool some = std::any_of(all.begin(), all.end(),
                                [](const PairResult* result) { return freezes(*result); });
  return all.empty() || some ? "" : "the policy has frozen nothing: the arms differ by plans alone";
}

// Names the arms that may cache and never have.
std::string tell_idle_caches(const Ablation& ablation) {
  std::string names;
  for (const ArmRow& row : ablation.rows) {
    const std::vector<const PairResult*> own = results_of(ablation.results, row.arm);
    if (!facts_of(row.arm).caches || own.empty()) continue;
    if (std::any_of(own.begin(), own.end(), [](const PairResult* r) { return r->cached > 0; })) {
      continue;
    }
    names += (names.empty() ? "" : ", ") + std::string(facts_of(row.arm).name);
  }
  return names.empty() ? "" : "nothing was cached, since no cache paid, by: " + names;
}

// Says in how many pairs of arms the predicted order of their times is the measured one.
std::string tell_order(const Ablation& ablation) {
  const PredictedOrder& order = ablation.order;
  if (order.compared == 0) return "";
  if (order.pairs == 0) {
    return fmt::format(
        "0 of {} pairs of arms differ by more than the noise: nothing is said of their order",
        order.compared);
  }
  std::string told = fmt::format(
      "of {} pairs of arms whose measured times differ by more than the noise (of {} in all) {} "
      "were predicted in that order",
      order.pairs, order.compared, order.right);
  if (!order.wrong.empty()) {
    told += fmt::format("; not, with the faster one first: {}", fmt::join(order.wrong, "; "));
  }
  return told;
}

// Names the arms of which there is a prediction on this basis.
std::string list_predicted(const Ablation& ablation, PredictionBasis basis) {
  std::string names;
  for (const ArmRow& row : ablation.rows) {
    if (!row.predicted || row.predicted->basis != basis) continue;
    names += (names.empty() ? "" : ", ") + std::string(facts_of(row.arm).name);
  }
  return names;
}

// Says what the predictions know of the runs beside which they stand.
std::string tell_bases(const Ablation& ablation) {
  std::string told;
  const auto add = [&](PredictionBasis basis, const std::string& words) {
    const std::string names = list_predicted(ablation, basis);
    if (!names.empty()) told += (told.empty() ? "" : "; ") + words + ": " + names;
  };
  const std::string from = ablation.samples_were_told
                               ? "predicted without any run"
                               : "predicted from the configuration and the length of the runs";
  const std::string measured_steps = "steps that follow from the measured time of all, so that ";
  add(PredictionBasis::kForecast, from + ", transitions charged as plan --forecast does");
  add(PredictionBasis::kRecordedMasks, "predicted from masks and transition times of a run");
  add(PredictionBasis::kTimeOfAll, measured_steps + "it is left out of errors and order");
  return told;
}

// Says if the masks were not those by which the arms were predicted.
std::string tell_other_masks(const Ablation& ablation) {
  if (ablation.other_masks.empty()) return "";
  return "predictions are of the masks that the configuration gives, and those of " +
         ablation.other_masks + " were others";
}

std::string tell_compute_limit(const Ablation& ablation) {
  if (!ablation.limit) return "";
  return tell_limit(*ablation.limit) + " (times are those that the profile predicts)";
}

void add_arm_notes(const ArmRow& row, std::vector<std::string>& notes) {
  const std::string_view name = facts_of(row.arm).name;
  if (!row.unfit.empty()) notes.push_back(fmt::format("{} does not fit: {}", name, row.unfit));
  if (row.more_time_percent) {
    notes.push_back(
        fmt::format("{} trains for {:.2f} epochs in the mean, in {:.1f} % {} time than all, with a "
                    "learning rate that ends with them",
                    name, row.epochs, std::abs(*row.more_time_percent),
                    *row.more_time_percent < 0 ? "less" : "more"));
  }
}

// Says how long `shorter` trains beside `all`, which it is to equal.
std::string tell_length_of_shorter(const Ablation& ablation) {
  constexpr double kAboutAsLong = 5;  // percent
  const auto shorter = std::find_if(ablation.rows.begin(), ablation.rows.end(),
                                    [](const ArmRow& row) { return row.arm == Arm::kShorter; });
  const double more = shorter == ablation.rows.end() ? 0 : shorter->more_time_percent.value_or(0);
  if (std::abs(more) <= kAboutAsLong) return "which trains unfrozen for as long";
  return fmt::format(
      "which trains unfrozen and was to take as long, but took {:.0f} % {}: the "
      "comparison is not one of equal time",
      std::abs(more), more < 0 ? "less" : "more");
}

std::string explain_gain(FreezingGain gain, const Ablation& ablation) {
  const std::string margin = fmt::format("(margin {})", tell_points(ablation.margin_points));
  std::string why;
  switch (gain) {
    case FreezingGain::kNothing:
      why = "training for so few steps that it takes as long as all is itself non-inferior to ";
      why += "unfrozen " + margin;
      break;
    case FreezingGain::kSomething:
      why = fmt::format("all is non-inferior to unfrozen {} and better than shorter, ", margin);
      why += "which is not, and " + tell_length_of_shorter(ablation);
      break;
    case FreezingGain::kNotShown: {
      const auto all = std::find_if(ablation.rows.begin(), ablation.rows.end(),
                                    [](const ArmRow& row) { return row.arm == Arm::kAll; });
      const bool is_better = all->beats_shorter.value_or(false);
      why = fmt::format("all is {} {}, ", name_of(all->verdict), margin);
      why += is_better ? "and better than shorter, " : "and not shown to be better than shorter, ";
      why += tell_length_of_shorter(ablation);
      break;
    }
  }
  return fmt::format("{}: {}", tell_gain(gain), why);
}

}  // namespace

std::string_view tell_gain(FreezingGain gain) {
  switch (gain) {
    case FreezingGain::kNothing:
      return "freezing brought nothing here";
    case FreezingGain::kSomething:
      return "freezing brought something here";
    case FreezingGain::kNotShown:
      return "not shown that freezing brings anything here";
  }
  ENSURE(false, "unknown gain");
}

std::vector<std::string> list_notes(const Ablation& ablation) {
  std::vector<std::string> notes;
  if (ablation.gain) notes.push_back(explain_gain(*ablation.gain, ablation));
  if (ablation.seeds.size() < 2) {
    notes.emplace_back(name_of(NonInferiority::kNoVerdict));
  } else if (ablation.seeds.size() < kLeastSeeds) {
    notes.push_back(
        fmt::format("verdicts of {} seeds are a first look: with fewer than {} a spread is a guess",
                    ablation.seeds.size(), kLeastSeeds));
  }
  if (ablation.asked_seeds &&
      ablation.asked_seeds->asked > static_cast<int>(ablation.seeds.size())) {
    notes.push_back(fmt::format("{} seeds, though the pilot's spread asks for {}",
                                ablation.seeds.size(), ablation.asked_seeds->asked));
  }
  if (ablation.test_error_points) {
    notes.push_back(fmt::format(
        "an accuracy on {} test samples has a standard error of {:.2f} points by itself",
        ablation.test_samples, *ablation.test_error_points));
  }
  if (!ablation.results.empty()) {
    std::string devices = tell_devices(ablation.results.front().inputs);
    if (!devices.empty()) notes.push_back(std::move(devices));
  }
  for (const ArmRow& row : ablation.rows) add_arm_notes(row, notes);
  for (const auto& tell :
       {tell_faster_base, tell_idle_policy, tell_idle_caches, tell_compute_limit, tell_bases,
        tell_other_masks, tell_order, tell_equal_weights, tell_versions, tell_disturbed}) {
    if (std::string told = tell(ablation); !told.empty()) notes.push_back(std::move(told));
  }
  return notes;
}

}  // namespace frazil
