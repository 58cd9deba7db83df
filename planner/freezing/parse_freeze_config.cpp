// Part of planner/freezing/freeze_json.h: reads a freeze configuration.
#include "planner/freezing/freeze_json.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/known_names.h"
#include "traces/freeze_trace.h"

namespace frazil {
namespace {

constexpr Step kLargestCount = 1'000'000'000;  // steps, epochs or evaluations
constexpr double kLargestNumber = 1e9;

constexpr const char* kKinds =
    R"(one of "none", "static", "alpha", "pt-paper", "autofreeze", "linear", "freezeout", )"
    R"("plasticity", "gradual-unfreeze", "random", "trace")";

// Tells which ends of a range are excluded.
struct Open {
  bool bottom = false;
  bool top = false;
};

void take(JsonFields& fields, const char* key, double minimum, double maximum, Open open,
          double& value) {
  const auto given = fields.optional(key);
  if (!given) return;
  value = given->real(minimum, maximum);
  if ((open.bottom && value == minimum) || (open.top && value == maximum)) {
    given->fail(given->describe(),
                fmt::format("{} {} and {} {}", open.bottom ? "above" : "at least", minimum,
                            open.top ? "below" : "at most", maximum));
  }
}

template <class Integer>
void take(JsonFields& fields, const char* key, Step minimum, Step maximum, Integer& value) {
  if (const auto given = fields.optional(key)) {
    value = static_cast<Integer>(given->integer(minimum, maximum));
  }
}

void take(JsonFields& fields, const char* key, bool& value) {
  if (const auto given = fields.optional(key)) value = given->boolean();
}

// Reads a pace, in epochs unless the file counts in steps.
template <class Paced>
void take_pace(JsonFields& fields, Paced& policy) {
  std::optional<JsonCursor> epochs = fields.optional("interval_epochs");
  std::optional<JsonCursor> steps = fields.optional("interval_steps");
  policy.interval = 1;
  if (epochs) policy.interval = epochs->integer(1, kLargestCount);
  if (steps) policy.interval = steps->integer(1, kLargestCount);
  if constexpr (requires { policy.start; }) {
    const auto start_epoch = fields.optional("start_epoch");
    const auto start_step = fields.optional("start_step");
    policy.start = 0;
    if (start_epoch) policy.start = start_epoch->integer(1, kLargestCount) - 1;
    if (start_step) policy.start = start_step->integer(0, kLargestCount);
    if (start_epoch) epochs = start_epoch;
    if (start_step) steps = start_step;
  }
  if (steps && epochs) {
    steps->fail("a number of steps beside one of epochs", "a pace in steps or one in epochs");
  }
  policy.unit = steps ? PaceUnit::kSteps : PaceUnit::kEpochs;
}

StaticFreeze parse_static(JsonFields& fields, int blocks) {
  StaticFreeze policy;
  const auto layers = fields.optional("frozen_layers");
  const auto mask = fields.optional("mask");
  if (layers) {
    policy.frozen_layers = static_cast<int>(layers->integer(0, std::max(blocks - 2, 0)));
  }
  if (mask && layers) mask->fail("a mask beside frozen_layers", "one of the two");
  if (!mask) return policy;
  policy.mask = FreezeMask::parse(*mask);
  if (policy.mask->blocks() != blocks) {
    mask->fail(fmt::format("a mask of {} blocks", policy.mask->blocks()),
               fmt::format("one of {}, as the model has", blocks));
  }
  return policy;
}

FreezeOut parse_freezeout(JsonFields& fields) {
  FreezeOut policy;
  take(fields, "t0", 0, 1, {}, policy.t0);
  take(fields, "power", 1, 3, policy.power);
  take(fields, "scaled", policy.scaled);
  return policy;
}

FreezeOut parse_rates(const std::string& text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  const JsonCursor kind = fields.required("kind");
  if (kind.text() != name_of(FreezePolicy(FreezeOut{}))) {
    kind.fail(kind.describe(), "\"freezeout\"");
  }
  FreezeOut policy = parse_freezeout(fields);
  fields.finish();
  return policy;
}

TraceFreeze parse_trace(JsonFields& fields, int blocks, const std::filesystem::path& folder) {
  TraceFreeze policy;
  const JsonCursor path = fields.required("path");
  policy.path = path.text();
  if (policy.path.empty()) path.fail("an empty path", "the file of a freeze trace");
  take(fields, "rescale", policy.rescale);
  const std::filesystem::path file = folder / policy.path;
  const FreezeTrace trace = read_freeze_trace(file);
  if (trace.blocks.size() != static_cast<std::size_t>(blocks)) {
    throw InputError(file.string(), 1, fmt::format("{} blocks", trace.blocks.size()),
                     fmt::format("{}, as the model has", blocks));
  }
  if (trace.steps < 1) throw InputError(file.string(), 1, "a run of no steps", "a step or more");
  policy.steps = trace.steps;
  for (const FreezeEvent& event : trace.events) {
    const auto* mask = std::get_if<MaskEvent>(&event.what);
    if (mask == nullptr) continue;
    if (!policy.masks.empty() && policy.masks.back().step == event.step) policy.masks.pop_back();
    policy.masks.push_back({event.step, mask->mask});
  }
  const auto rates = trace.provenance.find("rates");
  if (rates != trace.provenance.end()) policy.rates = parse_rates(rates->second, file.string());
  return policy;
}

struct PolicyReader {
  JsonFields& fields;
  int blocks;
  const std::filesystem::path& folder;

  void operator()(NoFreeze&) const {}
  void operator()(StaticFreeze& policy) const { policy = parse_static(fields, blocks); }
  void operator()(AlphaFreeze& policy) const {
    take(fields, "alpha", 0, 1, {true, true}, policy.alpha);
    take_pace(fields, policy);
  }
  void operator()(PaperFreeze& policy) const {
    take(fields, "alpha", 0, 1, {true, true}, policy.alpha);
    take_pace(fields, policy);
  }
  void operator()(AutoFreeze& policy) const {
    take(fields, "percentile", 0, 100, {.bottom = true}, policy.percentile);
    take_pace(fields, policy);
  }
  void operator()(LinearFreeze& policy) const {
    take(fields, "freeze_start", 0, 1, {.top = true}, policy.freeze_start);
    take(fields, "freeze_level", 0, 1, {.bottom = true}, policy.freeze_level);
    take_pace(fields, policy);
  }
  void operator()(FreezeOut& policy) const { policy = parse_freezeout(fields); }
  void operator()(PlasticityFreeze& policy) const {
    take(fields, "tolerance", 0, 1, {true, true}, policy.tolerance);
    take(fields, "patience", 1, kLargestCount, policy.patience);
    take(fields, "smoothing", 0, 1, {.bottom = true}, policy.smoothing);
    take(fields, "per_rate", policy.per_rate);
    take(fields, "thaw_at_rate", 0, 1, {.top = true}, policy.thaw_at_rate);
    take_pace(fields, policy);
  }
  void operator()(GradualUnfreeze& policy) const {
    take(fields, "blocks_per_interval", 1, std::max(blocks, 1), policy.blocks_per_interval);
    take_pace(fields, policy);
  }
  void operator()(RandomFreeze& policy) const {
    const int layers = std::max(blocks - 2, 0);
    policy.active_layers = std::min(policy.active_layers, layers);
    take(fields, "active_layers", 0, layers, policy.active_layers);
    take(fields, "embedding_active", policy.embedding_active);
    take_pace(fields, policy);
  }
  void operator()(TraceFreeze& policy) const { policy = parse_trace(fields, blocks, folder); }
};

// Returns the default policy of a kind. Throws InputError for an unknown name.
template <std::size_t... Numbers>
FreezePolicy make_default(const JsonCursor& kind, std::index_sequence<Numbers...>) {
  const std::array policies{FreezePolicy(std::in_place_index<Numbers>)...};
  std::vector<std::string_view> names;
  for (const FreezePolicy& policy : policies) {
    names.push_back(name_of(policy));
    if (is_same_name(names.back(), kind.text())) return policy;
  }
  kind.fail(kind.describe(), kKinds + did_you_mean(kind.text(), names));
}

FreezePolicy parse_policy(const JsonCursor& object, int blocks,
                          const std::filesystem::path& folder) {
  JsonFields fields(object);
  FreezePolicy policy = make_default(fields.required("kind"),
                                     std::make_index_sequence<std::variant_size_v<FreezePolicy>>());
  std::visit(PolicyReader{fields, blocks, folder}, policy);
  fields.finish();
  return policy;
}

// Reads {"steps": 5} or {"epochs": 1}, with the prefix before both keys ("within_steps"); none
// where neither key is there.
std::optional<Length> take_length(JsonFields& fields, const std::string& prefix) {
  const auto steps = fields.optional(prefix + "steps");
  const auto epochs = fields.optional(prefix + "epochs");
  if (steps && epochs) epochs->fail("epochs beside steps", "one of the two");
  if (steps) return Length{steps->integer(1, kLargestCount), PaceUnit::kSteps};
  if (epochs) return Length{epochs->integer(1, kLargestCount), PaceUnit::kEpochs};
  return std::nullopt;
}

Length parse_length(const JsonCursor& object) {
  JsonFields fields(object);
  const std::optional<Length> length = take_length(fields, "");
  fields.finish();
  if (!length) object.fail("no length", "a number of \"steps\" or \"epochs\"");
  return *length;
}

ValidationGuard parse_guard(const JsonCursor& object) {
  ValidationGuard guard;
  JsonFields fields(object);
  if (const auto metric = fields.optional("metric")) {
    if (metric->text() == "loss") {
      guard.metric = ValidationGuard::Metric::kLoss;
    } else if (metric->text() != "accuracy") {
      metric->fail(metric->describe(), R"("accuracy" or "loss")");
    }
  }
  take(fields, "sigmas", 0, kLargestNumber, {}, guard.sigmas);
  take(fields, "tolerance", 0, kLargestNumber, {}, guard.tolerance);
  take(fields, "smoothing", 0, 1, {.bottom = true}, guard.smoothing);
  take(fields, "hold_evaluations", 1, kLargestCount, guard.hold_evaluations);
  if (const auto waits = fields.optional("wait_while_improving")) guard.waits = waits->boolean();
  fields.finish();
  return guard;
}

AmortisationGate parse_gate(const JsonCursor& object) {
  AmortisationGate gate;
  JsonFields fields(object);
  take(fields, "margin_percent", 1, 1'000'000, gate.margin_percent);
  gate.within = take_length(fields, "within_");
  fields.finish();
  return gate;
}

Decorators parse_decorators(const JsonCursor& object) {
  Decorators around;
  JsonFields fields(object);
  if (const auto given = fields.optional("hysteresis")) around.hysteresis = {parse_length(*given)};
  if (const auto given = fields.optional("prefix"); given && given->boolean()) {
    around.prefix = PrefixProjection{};
  }
  if (const auto given = fields.optional("validation_guard")) around.guard = parse_guard(*given);
  if (const auto given = fields.optional("minimum_interval")) {
    around.minimum_interval = {parse_length(*given)};
  }
  if (const auto given = fields.optional("amortisation")) around.amortisation = parse_gate(*given);
  fields.finish();
  return around;
}

}  // namespace

FreezeConfig parse_freeze_config(const JsonCursor& object, int blocks,
                                 const std::filesystem::path& folder) {
  ENSURE(blocks >= 1, "a model of at least one block");
  FreezeConfig config;
  JsonFields fields(object);
  config.policy = parse_policy(fields.required("policy"), blocks, folder);
  if (const auto around = fields.optional("decorators")) {
    config.decorators = parse_decorators(*around);
  }
  if (const auto freezes = fields.optional("freeze_untrainable")) {
    config.freeze_untrainable = freezes->boolean();
  }
  fields.finish();
  return config;
}

}  // namespace frazil
