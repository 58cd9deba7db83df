#include "exec/train/trace_recorder.h"

#include <algorithm>

#include "exec/data/augmentation.h"
#include "exec/devices/host_facts.h"
#include "exec/train/earlier_log.h"
#include "planner/freezing/freeze_json.h"
#include "planner/freezing/freeze_schedule.h"
#include "profiles/error.h"
#include "traces/log_costs.h"

namespace frazil {

FreezeTrace describe_run(const TrainOptions& options, Step steps, const ComputeDevices& devices) {
  FreezeTrace trace;
  trace.model_hash = model_hash(options.profile);
  trace.blocks = options.profile.blocks;
  trace.steps = steps;
  trace.batch_size = options.config.batch_size;
  trace.provenance = host_facts();
  trace.provenance["command"] = options.command;
  trace.provenance["freeze"] = to_json(options.config.freeze);
  if (const auto rates = find_rates(options.config.freeze.policy)) {
    trace.provenance["rates"] = to_json(FreezePolicy(*rates));
  }
  if (options.config.batch_growth == BatchGrowth::kWithPipelines) {
    trace.provenance["batch"] = "grows with the pipelines";
  }
  if (options.config.cache.is_on()) {
    const int variants = count_variants(options.config.augmentation).value_or(1);
    trace.provenance["cache"] = options.config.augmentation.is_random()
                                    ? "variants, " + std::to_string(variants) + " of each sample"
                                    : "deterministic";
  }
  if (!options.model_check.empty()) trace.provenance["model_file"] = options.model_check;
  if (options.processors.kind != DeviceKind::kCpu) {
    trace.provenance["devices"] = devices.text();
  }
  return trace;
}

std::optional<std::string> TraceRecorder::go_on(Step first, const std::vector<FreezeEvent>& masks) {
  const std::optional<EarlierLog> earlier =
      place_.empty() ? std::nullopt : read_earlier_log(place_, trace_, first, masks);
  before_ = earlier ? earlier->log.events : masks;
  trace_.events = earlier ? add_costs(earlier->log) : masks;
  std::erase_if(trace_.events, [](const FreezeEvent& event) {
    return std::holds_alternative<StepEvent>(event.what) ||
           std::holds_alternative<CheckpointEvent>(event.what);
  });
  if (place_.empty() || (earlier && earlier->lost_lines == 0)) return std::nullopt;
  std::string told = "the event log lacks steps before " + std::to_string(first) +
                     ": what is recorded of the run begins there";
  if (earlier) {
    told = "damaged lines of the event log are left out, " + std::to_string(earlier->lost_lines) +
           " in all";
  }
  try {
    const std::string name = keep_copy(place_);
    return told + (name.empty() ? "" : "; the file is kept as " + name);
  } catch (const InputError& error) {
    return told + "; it was not kept: " + error.what();
  }
}

std::size_t TraceRecorder::count_plans() const {
  return static_cast<std::size_t>(std::count_if(
      trace_.events.begin(), trace_.events.end(),
      [](const FreezeEvent& event) { return std::holds_alternative<PlanEvent>(event.what); }));
}

void TraceRecorder::note(const FreezeEvent& event) {
  trace_.events.push_back(event);
  log(event);
}

void TraceRecorder::begin_log() {
  FreezeTrace header = trace_;
  header.events = std::move(before_);
  log_.emplace(place_, std::move(header));
}

// A failing log does not end the run.
void TraceRecorder::log(const FreezeEvent& event) {
  if (place_.empty()) return;
  try {
    if (!log_) begin_log();
    log_->write(event);
  } catch (const InputError& error) {
    failure_ = error.what();
    place_.clear();
    log_.reset();
  }
}

void TraceRecorder::begin_stretch(Step first) {
  stretch_first_ = first;
  stretch_place_ = trace_.events.size();
  stretch_ = {};
}

void TraceRecorder::add_step(std::int64_t samples, Duration time) {
  ++stretch_.steps;
  stretch_.samples += samples;
  stretch_.measured += time;
}

void TraceRecorder::end_stretch() {
  if (stretch_.steps == 0) return;
  const auto place = trace_.events.begin() + static_cast<std::ptrdiff_t>(stretch_place_);
  trace_.events.insert(place, {stretch_first_, stretch_});
  stretch_ = {};
}

}  // namespace frazil
