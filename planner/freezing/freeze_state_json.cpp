// Part of planner/freezing/freeze_json.h: writes and reads what a policy remembers.
#include "planner/freezing/freeze_json.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr const char* kFormat = "frazil.freeze_state";
constexpr int kVersion = 1;
constexpr std::int64_t kLargestInteger = std::numeric_limits<std::int64_t>::max() / 2;
constexpr int kLargestInt = std::numeric_limits<int>::max();
constexpr double kLargestReal = std::numeric_limits<double>::max();

Step take_step(JsonFields& fields, const char* key) {
  return fields.required(key).integer(0, kLargestInteger);
}

int take_count(JsonFields& fields, const char* key) {
  return static_cast<int>(fields.required(key).integer(0, kLargestInt));
}

double take_size(JsonFields& fields, const char* key) {  // a real number of at least 0
  return fields.required(key).real(0, kLargestReal);
}

struct StateReader {
  JsonFields& fields;

  void operator()(NoState&) const {}
  void operator()(PaperState& state) const {
    state.decided = take_step(fields, "decided");
    state.reached = take_size(fields, "reached");
  }
  void operator()(AutoFreezeState& state) const {
    state.decided = take_step(fields, "decided");
    state.frozen = take_count(fields, "frozen");
    for (const JsonCursor& value : fields.required("previous").items()) {
      state.previous.push_back(value.real(0, kLargestReal));
    }
  }
  void operator()(PlasticityState& state) const {
    state.decided = take_step(fields, "decided");
    state.frozen = take_count(fields, "frozen");
    state.rate = take_size(fields, "rate");
    for (const JsonCursor& item : fields.required("blocks").items()) {
      PlasticityState::Block& block = state.blocks.emplace_back();
      if (item.is_null()) continue;
      JsonFields of_block(item);
      block.is_read = true;
      block.smoothed = take_size(of_block, "smoothed");
      block.largest = take_size(of_block, "largest");
      block.calm = take_count(of_block, "calm");
      of_block.finish();
    }
  }
};

PolicyState parse_policy_state(const JsonCursor& object, const FreezePolicy& policy, int blocks) {
  JsonFields fields(object);
  const JsonCursor kind = fields.required("kind");
  if (kind.text() != name_of(policy)) {
    kind.fail(kind.describe(), fmt::format("the state of policy \"{}\"", name_of(policy)));
  }
  PolicyState state = initial_state(policy);
  std::visit(StateReader{fields}, state);
  fields.finish();
  if (!is_state_of(policy, state, blocks)) {
    object.fail("a state of another model", fmt::format("one of a model of {} blocks", blocks));
  }
  return state;
}

FreezeMask parse_mask(const JsonCursor& bits, int blocks) {
  FreezeMask mask = FreezeMask::parse(bits);
  if (mask.blocks() != blocks) {
    bits.fail(fmt::format("a mask of {} blocks", mask.blocks()),
              fmt::format("one of {}, as the model has", blocks));
  }
  return mask;
}

HysteresisState parse_hysteresis(const JsonCursor& object, int blocks) {
  HysteresisState state;
  JsonFields fields(object);
  if (const auto wanted = fields.optional("wanted")) {
    state.wanted = parse_mask(*wanted, blocks);
    const JsonCursor list = fields.required("since");
    for (const JsonCursor& item : list.items()) {
      state.since.push_back(item.integer(0, kLargestInteger));
    }
    if (state.since.size() != static_cast<std::size_t>(blocks)) {
      list.fail(fmt::format("{} blocks", state.since.size()),
                fmt::format("{}, as the model has", blocks));
    }
  }
  fields.finish();
  return state;
}

ValidationGuardState parse_guard_state(const JsonCursor& object) {
  ValidationGuardState state;
  JsonFields fields(object);
  if (const auto read = fields.optional("read_step"))
    state.read = read->integer(0, kLargestInteger);
  if (const auto mean = fields.optional("mean")) {
    state.mean = mean->real(-kLargestReal, kLargestReal);
  }
  if (const auto last = fields.optional("last")) {
    state.last = last->real(-kLargestReal, kLargestReal);
  }
  state.variance = take_size(fields, "variance");
  state.hold = take_count(fields, "hold");
  state.improves = fields.required("improves").boolean();
  state.thaws = fields.required("thaws").integer(0, kLargestInteger);
  fields.finish();
  return state;
}

struct StateWriter {
  std::string operator()(const NoState&) const { return ""; }
  std::string operator()(const PaperState& state) const {
    return fmt::format(R"(, "decided": {}, "reached": {})", state.decided, state.reached);
  }
  std::string operator()(const AutoFreezeState& state) const {
    return fmt::format(R"(, "decided": {}, "frozen": {}, "previous": [{}])", state.decided,
                       state.frozen, fmt::join(state.previous, ", "));
  }
  std::string operator()(const PlasticityState& state) const {
    std::string blocks;
    for (const PlasticityState::Block& block : state.blocks) {
      if (!blocks.empty()) blocks += ", ";
      blocks += block.is_read ? fmt::format(R"({{"smoothed": {}, "largest": {}, "calm": {}}})",
                                            block.smoothed, block.largest, block.calm)
                              : "null";
    }
    return fmt::format(R"(, "decided": {}, "frozen": {}, "rate": {}, "blocks": [{}])",
                       state.decided, state.frozen, state.rate, blocks);
  }
};

std::string hysteresis_text(const HysteresisState& state) {
  if (state.since.empty()) return "{}";
  return fmt::format(R"({{"wanted": "{}", "since": [{}]}})", state.wanted.text(),
                     fmt::join(state.since, ", "));
}

std::string guard_text(const ValidationGuardState& state) {
  std::string text;
  if (state.read) text += fmt::format(R"("read_step": {}, )", *state.read);
  if (state.mean) text += fmt::format(R"("mean": {}, )", *state.mean);
  if (state.last) text += fmt::format(R"("last": {}, )", *state.last);
  return fmt::format(R"({{{}"variance": {}, "hold": {}, "improves": {}, "thaws": {}}})", text,
                     state.variance, state.hold, state.improves, state.thaws);
}

}  // namespace

FreezeState parse_freeze_state(const JsonCursor& object, const FreezeConfig& config, int blocks) {
  FreezeState state;
  JsonFields fields(object);
  expect_format(fields, kFormat, kVersion);
  state.policy = parse_policy_state(fields.required("policy"), config.policy, blocks);
  if (const auto step = fields.optional("step")) {
    state.step = step->integer(0, kLargestInteger);
    state.mask = parse_mask(fields.required("mask"), blocks);
    if (const auto changed = fields.optional("changed_step")) {
      state.changed = changed->integer(0, *state.step);
    }
  }
  if (config.decorators.hysteresis) {
    state.hysteresis = parse_hysteresis(fields.required("hysteresis"), blocks);
  }
  if (config.decorators.guard) state.guard = parse_guard_state(fields.required("validation_guard"));
  fields.finish();
  return state;
}

std::string to_json(const FreezeState& state, const FreezeConfig& config) {
  std::string text =
      fmt::format(R"({{"format": "{}", "version": {}, "policy": {{"kind": "{}"{}}})", kFormat,
                  kVersion, name_of(config.policy), std::visit(StateWriter{}, state.policy));
  if (state.step) {
    text += fmt::format(R"(, "step": {}, "mask": "{}")", *state.step, state.mask.text());
  }
  if (state.changed) text += fmt::format(R"(, "changed_step": {})", *state.changed);
  if (config.decorators.hysteresis) {
    text += fmt::format(R"(, "hysteresis": {})", hysteresis_text(state.hysteresis));
  }
  if (config.decorators.guard) {
    text += fmt::format(R"(, "validation_guard": {})", guard_text(state.guard));
  }
  return text + "}";
}

}  // namespace frazil
