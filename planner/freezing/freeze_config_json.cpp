// Part of planner/freezing/freeze_json.h: writes a freeze configuration.
#include "planner/freezing/freeze_json.h"

#include <fmt/format.h>

namespace frazil {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }

template <class Paced>
std::string pace_text(const Paced& policy) {
  const bool steps = policy.unit == PaceUnit::kSteps;
  std::string text;
  if constexpr (requires { policy.start; }) {
    text = steps ? fmt::format(R"("start_step": {}, )", policy.start)
                 : fmt::format(R"("start_epoch": {}, )", policy.start + 1);
  }
  return text + fmt::format(R"("interval_{}": {})", steps ? "steps" : "epochs", policy.interval);
}

struct PolicyWriter {
  std::string operator()(const NoFreeze&) const { return ""; }
  std::string operator()(const StaticFreeze& policy) const {
    if (policy.mask) return fmt::format(R"(, "mask": "{}")", policy.mask->text());
    return fmt::format(R"(, "frozen_layers": {})", policy.frozen_layers);
  }
  std::string operator()(const AlphaFreeze& policy) const {
    return fmt::format(R"(, "alpha": {}, {})", policy.alpha, pace_text(policy));
  }
  std::string operator()(const PaperFreeze& policy) const {
    return fmt::format(R"(, "alpha": {}, {})", policy.alpha, pace_text(policy));
  }
  std::string operator()(const AutoFreeze& policy) const {
    return fmt::format(R"(, "percentile": {}, {})", policy.percentile, pace_text(policy));
  }
  std::string operator()(const LinearFreeze& policy) const {
    return fmt::format(R"(, "freeze_start": {}, "freeze_level": {}, {})", policy.freeze_start,
                       policy.freeze_level, pace_text(policy));
  }
  std::string operator()(const FreezeOut& policy) const {
    return fmt::format(R"(, "t0": {}, "power": {}, "scaled": {})", policy.t0, policy.power,
                       text_of(policy.scaled));
  }
  std::string operator()(const PlasticityFreeze& policy) const {
    return fmt::format(R"(, "tolerance": {}, "patience": {}, "smoothing": {}, "per_rate": {}, )"
                       R"("thaw_at_rate": {}, {})",
                       policy.tolerance, policy.patience, policy.smoothing,
                       text_of(policy.per_rate), policy.thaw_at_rate, pace_text(policy));
  }
  std::string operator()(const GradualUnfreeze& policy) const {
    return fmt::format(R"(, "blocks_per_interval": {}, {})", policy.blocks_per_interval,
                       pace_text(policy));
  }
  std::string operator()(const RandomFreeze& policy) const {
    return fmt::format(R"(, "active_layers": {}, "embedding_active": {}, {})", policy.active_layers,
                       text_of(policy.embedding_active), pace_text(policy));
  }
  std::string operator()(const TraceFreeze& policy) const {
    return fmt::format(R"(, "path": {}, "rescale": {})", json_string(policy.path),
                       text_of(policy.rescale));
  }
};

std::string length_text(const Length& length, const std::string& prefix) {
  return fmt::format(R"("{}{}": {})", prefix, length.unit == PaceUnit::kSteps ? "steps" : "epochs",
                     length.count);
}

std::string decorators_text(const Decorators& around) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", key, value);
  };
  if (around.hysteresis) add("hysteresis", "{" + length_text(around.hysteresis->length, "") + "}");
  if (around.prefix) add("prefix", "true");
  if (around.guard) {
    const ValidationGuard& guard = *around.guard;
    add("validation_guard",
        fmt::format(R"({{"metric": "{}", "sigmas": {}, "tolerance": {}, "smoothing": {}, )"
                    R"("hold_evaluations": {}, "wait_while_improving": {}}})",
                    guard.metric == ValidationGuard::Metric::kLoss ? "loss" : "accuracy",
                    guard.sigmas, guard.tolerance, guard.smoothing, guard.hold_evaluations,
                    guard.waits));
  }
  if (around.minimum_interval) {
    add("minimum_interval", "{" + length_text(around.minimum_interval->length, "") + "}");
  }
  if (around.amortisation) {
    const AmortisationGate& gate = *around.amortisation;
    add("amortisation",
        fmt::format(R"({{"margin_percent": {}{}{}}})", gate.margin_percent, gate.within ? ", " : "",
                    gate.within ? length_text(*gate.within, "within_") : ""));
  }
  return "{" + text + "}";
}

}  // namespace

std::string to_json(const FreezePolicy& policy) {
  return fmt::format(R"({{"kind": "{}"{}}})", name_of(policy), std::visit(PolicyWriter{}, policy));
}

std::string to_json(const FreezeConfig& config) {
  return fmt::format(R"({{"policy": {}, "decorators": {}{}}})", to_json(config.policy),
                     decorators_text(config.decorators),
                     config.freeze_untrainable ? R"(, "freeze_untrainable": true)" : "");
}

}  // namespace frazil
