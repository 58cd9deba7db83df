#include "exec/train/freeze_control.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "exec/disk/hashes.h"
#include "planner/freezing/freeze_json.h"
#include "planner/freezing/freeze_schedule.h"
#include "planner/plan/plan_json.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kProbeSamples = 32;
constexpr std::int64_t kMostDevices = 1'000'000;
constexpr std::size_t kDigits = 16;  // of a double's bits

bool contains(const std::vector<Signal>& signals, Signal signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

// Writes the bits of the numbers, one after another, so that they come back whatever they are.
std::string sketch_text(const std::vector<double>& sketch) {
  std::string text;
  for (const double number : sketch) text += to_hex(std::bit_cast<std::uint64_t>(number));
  return text;
}

std::vector<double> parse_sketch(const JsonCursor& value, std::size_t numbers) {
  const std::string& text = value.text();
  if (text.size() != numbers * kDigits) {
    value.fail("a text of " + std::to_string(text.size()) + " digits",
               std::to_string(numbers * kDigits) + " digits");
  }
  std::vector<double> sketch;
  for (std::size_t i = 0; i < text.size(); i += kDigits) {
    const auto bits = parse_hex(std::string_view(text).substr(i, kDigits));
    if (!bits) value.fail("a sign that is no hex digit", "hex digits");
    sketch.push_back(std::bit_cast<double>(*bits));
  }
  return sketch;
}

OneMemory read_memory(const JsonCursor& value) {
  JsonFields fields(value);
  const auto rate = [&](const char* name) {
    return BytesPerSecond{fields.required(name).integer(1, kLargestQuantity)};
  };
  const OneMemory memory{.copied_alone = rate("copied_alone"),
                         .copied_together = rate("copied_together"),
                         .hashed = rate("hashed")};
  fields.finish();
  return memory;
}

Json origin_json(const PlanCourse::Origin& origin) {
  Json text{{"step", origin.step}, {"overhead_known", origin.overhead_known}};
  text["devices"] = Json::array();
  for (const DeviceId device : origin.devices) text["devices"].push_back(device.value);
  if (origin.before) {
    text["before"] = {{"plan", to_json(origin.before->plan)},
                      {"trained", origin.before->trained.text()}};
  }
  return text;
}

TrajectoryOptions::Before read_before(const JsonCursor& value, const std::string& file) {
  JsonFields fields(value);
  const JsonCursor trained = fields.required("trained");
  TrajectoryOptions::Before before{parse_plan(fields.required("plan").text(), file),
                                   FreezeMask::parse(trained)};
  fields.finish();
  return before;
}

PlanCourse::Origin read_origin(const JsonCursor& value, const std::string& file) {
  JsonFields fields(value);
  PlanCourse::Origin origin;
  origin.step = fields.required("step").integer(0, kLargestQuantity);
  origin.overhead_known = fields.required("overhead_known").boolean();
  for (const JsonCursor& device : fields.required("devices").items()) {
    origin.devices.emplace_back(static_cast<int>(device.integer(0, kMostDevices)));
  }
  if (const auto before = fields.optional("before")) origin.before = read_before(*before, file);
  fields.finish();
  return origin;
}

}  // namespace

Samples probe_of(const SampleSource& samples) {
  return samples.narrow(0, std::min(samples.count(), kProbeSamples));
}

FreezeControl::FreezeControl(const FreezeConfig& config, const RunShape& shape,
                             const SampleSource& samples, Run& run, Replanner& replanner)
    : config_(config),
      shape_(shape),
      probe_(probe_of(samples)),
      run_(run),
      replanner_(replanner),
      authority_(config, shape, predictor(), room_finder()) {}

FindRoom FreezeControl::room_finder() {
  return [this](const FreezeMask& mask) { return replanner_.has_room(mask); };
}

PredictTransition FreezeControl::predictor() {
  return [this](const FreezeMask&, const FreezeMask& to, Step step) {
    return replanner_.predict(to, shape_.steps_per_epoch, shape_.steps - step);
  };
}

void FreezeControl::ask(Step step, Measurement& measurement) const {
  measurement.gradient_squares |= contains(authority_.needed_signals(step), Signal::kGradientNorms);
  measurement.gradient_sums = contains(needed_signals(config_), Signal::kIntervalGradients);
}

FreezeSignals FreezeControl::measure(Step step, const Before& before) {
  FreezeSignals signals{.step = step};
  signals.learning_rate = before.learning_rate;
  signals.validation = before.validation;
  for (const Signal signal : authority_.needed_signals(step)) {
    switch (signal) {
      case Signal::kGradientNorms:
        signals.gradient_norms = gradient_norms(run_.model(), before.gradient_squares);
        break;
      case Signal::kIntervalGradients:
        signals.interval_gradients = run_.interval_gradients();
        break;
      case Signal::kPlasticity:
        now_ = run_.sketch_blocks(probe_);
        signals.plasticity = compare_sketches(now_, then_);
        break;
      case Signal::kLearningRate:
      case Signal::kValidation:
        break;
    }
  }
  return signals;
}

// Sums are cleared by all processes. If one is lost meanwhile, the decision stands, and is handed
// out once they are cleared.
FreezeControl::Decided FreezeControl::decide(Step step, const Before& before) {
  if (!unfinished_) {
    if (authority_.state().step == step) return {authority_.decide({.step = step}), {}};
    unfinished_ = decide_anew(step, before);
  }
  if (unfinished_->clears_sums) run_.clear_gradient_sums();
  return std::exchange(unfinished_, std::nullopt)->decided;
}

FreezeControl::Unfinished FreezeControl::decide_anew(Step step, const Before& before) {
  if (!authority_.state().step && contains(needed_signals(config_), Signal::kPlasticity)) {
    then_ = run_.sketch_blocks(probe_);
  }
  const std::vector<Signal> asked = authority_.needed_signals(step);
  FreezeSignals signals = measure(step, before);
  Decision decision = authority_.decide(signals);
  // A signal that is not asked for any more has been read, and begins anew.
  const auto was_read = [&](Signal signal) {
    return contains(asked, signal) && !contains(authority_.needed_signals(step), signal);
  };
  if (was_read(Signal::kPlasticity)) then_ = std::move(now_);
  if (decision.changed) masks_.push_back({step, decision.mask});
  return {.decided = {std::move(decision), std::move(signals)},
          .clears_sums = was_read(Signal::kIntervalGradients)};
}

std::vector<double> FreezeControl::rate_factors(Step step) const {
  const std::optional<FreezeOut> rates = find_rates(config_.policy);
  if (!rates) return {};
  const double progress = static_cast<double>(step) / static_cast<double>(shape_.steps);
  std::vector<double> factors;
  for (int block = 0; block < shape_.counted(); ++block) {
    factors.push_back(freezeout_rate(*rates, BlockId{block}, shape_.counted(), progress));
  }
  factors.resize(static_cast<std::size_t>(shape_.blocks), 1.0);
  return factors;
}

std::string FreezeControl::to_json() const {
  Json text{{"state", Json::parse(frazil::to_json(authority_.state(), config_))}};
  text["masks"] = Json::array();
  for (const TracedMask& mask : masks_) {
    text["masks"].push_back({{"step", mask.step}, {"mask", mask.mask.text()}});
  }
  text["sketches"] = Json::array();
  for (const std::vector<double>& sketch : then_) text["sketches"].push_back(sketch_text(sketch));
  if (const auto& overhead = replanner_.overhead()) {
    text["overhead"] = {{"plan_ns", overhead->plan.count()},
                        {"move_ns", overhead->move.count()},
                        {"start_ns", overhead->start.count()}};
    if (const auto& memory = overhead->memory) {
      text["overhead"]["memory_bytes_per_second"] = {
          {"copied_alone", memory->copied_alone.count},
          {"copied_together", memory->copied_together.count},
          {"hashed", memory->hashed.count}};
    }
  }
  if (const auto& origin = replanner_.course().origin()) text["course"] = origin_json(*origin);
  return text.dump();
}

void FreezeControl::restore(const std::string& json, const std::string& file) {
  JsonFields fields(parse_json(json, file));
  FreezeState state = parse_freeze_state(fields.required("state"), config_, shape_.blocks);
  masks_.clear();
  for (const JsonCursor& item : fields.required("masks").items()) {
    JsonFields mask(item);
    const Step step = mask.required("step").integer(0, shape_.steps);
    const JsonCursor bits = mask.required("mask");
    masks_.push_back({step, FreezeMask::parse(bits)});
    mask.finish();
  }
  const auto pairs = static_cast<std::size_t>(probe_.count() * probe_.count());
  then_.clear();
  for (const JsonCursor& sketch : fields.required("sketches").items()) {
    then_.push_back(parse_sketch(sketch, pairs));
  }
  if (const auto overhead = fields.optional("overhead")) {
    JsonFields parts(*overhead);
    const auto time = [&](const char* name) {
      return Duration{parts.required(name).integer(0, kLargestQuantity)};
    };
    const Duration plan = time("plan_ns");
    const Duration move = time("move_ns");
    const Duration start = time("start_ns");
    std::optional<OneMemory> memory;
    if (const auto rates = parts.optional("memory_bytes_per_second")) memory = read_memory(*rates);
    parts.finish();
    replanner_.set_overhead({.plan = plan, .move = move, .start = start, .memory = memory});
  }
  if (const auto course = fields.optional("course")) {
    replanner_.restore_course(read_origin(*course, file), masks_);
  }
  fields.finish();
  authority_ = FreezeAuthority(config_, shape_, std::move(state), predictor(), room_finder());
}

}  // namespace frazil
