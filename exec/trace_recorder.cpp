#include "exec/trace_recorder.h"

#include <algorithm>

#include "exec/augmentation.h"
#include "exec/host_facts.h"
#include "planner/freezing/freeze_json.h"
#include "planner/freezing/freeze_schedule.h"
#include "profiles/error.h"

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
  if (options.config.cache.is_on()) {
    const int variants = count_variants(options.config.augmentation).value_or(1);
    trace.provenance["cache"] = options.config.augmentation.is_random()
                                    ? "variants, " + std::to_string(variants) + " of each sample"
                                    : "deterministic";
  }
  if (options.processors.kind != DeviceKind::kCpu) {
    trace.provenance["devices"] = devices.text();
  }
  return trace;
}

void TraceRecorder::begin(Step first, const std::vector<FreezeEvent>& before) {
  first_ = first;
  trace_.events = before;
}

void TraceRecorder::note(const FreezeEvent& event) {
  trace_.events.push_back(event);
  log(event);
}

// A run is not to end for its log.
void TraceRecorder::log(const FreezeEvent& event) {
  if (place_.empty()) return;
  try {
    if (!log_) log_.emplace(place_, trace_, first_);
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
