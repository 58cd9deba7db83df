#include "analysis/plan_regret.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "planner/prediction/answer_parts.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

constexpr const char* kFrom = "plans.from_step";
constexpr const char* kPredicted = "plans.predicted_ns";
constexpr const char* kHindsight = "plans.hindsight_ns";
constexpr const char* kAsking = "plans.asking_ns";
constexpr const char* kTransitions = "plans.transitions";
constexpr const char* kFactor = "plans.worst_factor";
constexpr const char* kAdditive = "plans.worst_additive_ns";

std::optional<std::int64_t> find_number(const Provenance& provenance, const char* key) {
  const auto found = provenance.find(key);
  if (found == provenance.end()) return std::nullopt;
  const std::string& text = found->second;
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

double PlanRegret::share() const {
  if (hindsight <= Duration{0}) return 0;
  return static_cast<double>((predicted - hindsight).count()) /
         static_cast<double>(hindsight.count());
}

void note_regret(const PlanRegret& regret, Provenance& provenance) {
  const auto note = [&](const char* key, auto number) { provenance[key] = std::to_string(number); };
  note(kFrom, regret.from);
  note(kPredicted, regret.predicted.count());
  note(kHindsight, regret.hindsight.count());
  note(kAsking, regret.asking.count());
  note(kTransitions, regret.transitions);
  if (!regret.guarantee) return;
  note(kFactor, regret.guarantee->factor);
  note(kAdditive, regret.guarantee->additive.count());
}

std::optional<PlanRegret> find_regret(const Provenance& provenance) {
  const auto from = find_number(provenance, kFrom);
  const auto predicted = find_number(provenance, kPredicted);
  const auto hindsight = find_number(provenance, kHindsight);
  const auto asking = find_number(provenance, kAsking);
  const auto transitions = find_number(provenance, kTransitions);
  if (!from || !predicted || !hindsight || !asking || !transitions) return std::nullopt;
  PlanRegret regret{*from, Duration{*predicted}, Duration{*hindsight}, Duration{*asking},
                    static_cast<int>(*transitions)};
  const auto factor = find_number(provenance, kFactor);
  const auto additive = find_number(provenance, kAdditive);
  if (factor && additive) {
    regret.guarantee = {static_cast<std::size_t>(*factor), Duration{*additive}};
  }
  return regret;
}

std::string tell_regret(const PlanRegret& regret) {
  std::string text = fmt::format(
      "plans and transitions{}: {} predicted with {}, {} in hindsight, {:.2f} % above it",
      regret.from == 0 ? "" : fmt::format(" from step {} on", regret.from),
      to_text(regret.predicted), count_of(regret.transitions, "transition"),
      to_text(regret.hindsight), 100 * regret.share());
  text += regret.guarantee
              ? fmt::format("; the masks were not known: at most {} x hindsight + {}",
                            regret.guarantee->factor, to_text(regret.guarantee->additive))
              : std::string("; the masks were known");
  return text + fmt::format("; asking the planner took {}", to_text(regret.asking));
}

std::string regret_json(const PlanRegret& regret) {
  nlohmann::ordered_json json{{"from_step", regret.from},
                              {"predicted_ns", regret.predicted.count()},
                              {"hindsight_ns", regret.hindsight.count()},
                              {"regret_ns", (regret.predicted - regret.hindsight).count()},
                              {"transitions", regret.transitions},
                              {"asking_ns", regret.asking.count()}};
  if (regret.guarantee) {
    json["worst_factor"] = regret.guarantee->factor;
    json["worst_additive_ns"] = regret.guarantee->additive.count();
  }
  return json.dump();
}

}  // namespace frazil
