#include "traces/freeze_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "profiles/error.h"
#include "profiles/json.h"
#include "profiles/text_file.h"
#include "traces/freeze_trace_names.h"

namespace frazil {
namespace {

// Writes the shortest digits that read back as the same number, always with a point or an exponent.
std::string real_text(double number, const std::string& name, Step step) {
  if (!std::isfinite(number)) {
    throw InputError("freeze trace", 0, fmt::format("{} {} at step {}", name, number, step),
                     "a finite number");
  }
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void ensure_counts(std::initializer_list<std::int64_t> counts) {
  ENSURE(std::min(counts) >= 0, "times, sizes and counts of a freeze trace are at least 0");
}

// Writes the members of one event that follow its step.
struct MemberWriter {
  Step step = 0;
  std::size_t blocks = 0;

  std::string accuracy_text(const std::string& key, std::optional<double> accuracy) const {
    if (!accuracy) return "";
    ENSURE(!(*accuracy < 0 || *accuracy > 1), "an accuracy is a share, 0 to 1");
    return fmt::format(R"(,"{}":{})", key, real_text(*accuracy, key, step));
  }

  std::string operator()(const MaskEvent& event) const {
    ENSURE(static_cast<std::size_t>(event.mask.blocks()) == blocks && blocks > 0,
           "a mask has one bit per block of its trace");
    std::string why;
    if (!event.by.empty()) {
      why =
          fmt::format(R"(,"by":{},"reason":{})", json_string(event.by), json_string(event.reason));
    }
    return fmt::format(R"("kind":"mask","mask":"{}"{})", event.mask.text(), why);
  }
  std::string operator()(const PlanEvent& event) const {
    ensure_counts({event.predicted_step.count(), event.batch_size});
    return fmt::format(
        R"("kind":"plan","plan":{},"summary":{},"predicted_step_ns":{}{}{})",
        json_string(event.plan), json_string(event.summary), event.predicted_step.count(),
        event.extrapolated ? R"(,"extrapolated":true)" : "",
        event.batch_size > 0 ? fmt::format(R"(,"batch_size":{})", event.batch_size) : "");
  }
  std::string operator()(const TransitionEvent& event) const {
    ensure_counts({event.plan_time.count(), event.move_time.count(), event.start_time.count(),
                   event.moved.count});
    std::string predicted;
    if (event.predicted) {
      const TransitionTimes& times = *event.predicted;
      ensure_counts({times.plan.count(), times.move.count(), times.start.count()});
      predicted = fmt::format(R"(,"predicted_plan_time_ns":{},"predicted_move_time_ns":{},)"
                              R"("predicted_start_time_ns":{})",
                              times.plan.count(), times.move.count(), times.start.count());
    }
    return fmt::format(R"("kind":"transition","plan_time_ns":{},"move_time_ns":{},)"
                       R"("start_time_ns":{},"moved_bytes":{}{})",
                       event.plan_time.count(), event.move_time.count(), event.start_time.count(),
                       event.moved.count, predicted);
  }
  std::string operator()(const CostEvent& event) const {
    ensure_counts({event.steps, event.samples, event.measured.count()});
    return fmt::format(R"("kind":"cost","steps":{},"samples":{},"measured_ns":{})", event.steps,
                       event.samples, event.measured.count());
  }
  std::string operator()(const EvalEvent& event) const {
    ensure_counts({event.epoch});
    std::string more = accuracy_text("accuracy", event.accuracy);
    if (event.validation) {
      more += fmt::format(R"(,"validation_loss":{})",
                          real_text(event.validation->loss, "validation_loss", step)) +
              accuracy_text("validation_accuracy", event.validation->accuracy);
    }
    return fmt::format(R"("kind":"eval","epoch":{},"train_loss":{},"loss":{}{})", event.epoch,
                       real_text(event.train_loss, "train_loss", step),
                       real_text(event.loss, "loss", step), more);
  }
  std::string operator()(const SignalsEvent& event) const {
    std::string members;
    for (const auto& [name, value] : event.signals) {
      if (!members.empty()) members += ',';
      members += json_string(name) + ':' + real_text(value, name, step);
    }
    return fmt::format(R"("kind":"signals","signals":{{{}}})", members);
  }
  std::string operator()(const StepEvent& event) const {
    ensure_counts({event.samples, event.time.count()});
    return fmt::format(R"("kind":"step","loss":{},"samples":{},"time_ns":{})",
                       real_text(event.loss, "loss", step), event.samples, event.time.count());
  }
  std::string operator()(const CheckpointEvent& event) const {
    ensure_counts({event.time.count(), event.of, step - event.of});
    const std::string of = event.of == step ? "" : fmt::format(R"("of":{},)", event.of);
    return fmt::format(R"("kind":"checkpoint",{}"time_ns":{})", of, event.time.count());
  }
  std::string operator()(const CacheEvent& event) const {
    ensure_counts({event.layers, event.samples, event.memory.count, event.disk.count,
                   event.predicted.count(), event.measured.count()});
    return fmt::format(R"("kind":"{}","event":"{}","layers":{},"samples":{},"memory_bytes":{},)"
                       R"("disk_bytes":{},"predicted_ns":{},"measured_ns":{},"note":{})",
                       kCacheKind, name_of(event.change), event.layers, event.samples,
                       event.memory.count, event.disk.count, event.predicted.count(),
                       event.measured.count(), json_string(event.note));
  }
  std::string operator()(const MembersEvent& event) const {
    ensure_counts({event.devices});
    std::string times;
    if (event.times) {
      const RecoveryTimes& took = *event.times;
      ensure_counts({took.detection.count(), took.plan.count(), took.transfer.count(),
                     took.first_step.count()});
      times = fmt::format(R"(,"plan_ready":{},"detection_ns":{},"plan_ns":{},"transfer_ns":{},)"
                          R"("first_step_ns":{})",
                          took.plan_ready, took.detection.count(), took.plan.count(),
                          took.transfer.count(), took.first_step.count());
    }
    return fmt::format(R"("kind":"{}","event":"{}","devices":{},"note":{}{})", kMembersKind,
                       name_of(event.change), event.devices, json_string(event.note), times);
  }
  std::string operator()(const DriftEvent& event) const { return members_of(event); }
  std::string operator()(const DevicesEvent& event) const { return members_of(event); }
};

}  // namespace

std::string_view name_of(CacheChange change) {
  return kCacheChanges.at(static_cast<std::size_t>(change));
}

std::string_view name_of(MembersChange change) {
  return kMembersChanges.at(static_cast<std::size_t>(change));
}

std::string header_line(const FreezeTrace& trace) {
  ensure_counts({trace.steps, trace.batch_size});
  std::string blocks;
  for (const std::string& block : trace.blocks) {
    if (!blocks.empty()) blocks += ',';
    blocks += json_string(block);
  }
  std::string provenance;
  for (const auto& [key, value] : trace.provenance) {
    if (!provenance.empty()) provenance += ',';
    provenance += json_string(key) + ':' + json_string(value);
  }
  const std::string whole =
      trace.open ? R"("open":true)" : fmt::format(R"("events":{})", count_events(trace));
  return fmt::format(R"({{"format":"{}","version":{},"model_hash":{},"blocks":[{}],"steps":{},)"
                     R"({},"batch_size":{},"provenance":{{{}}}}})"
                     "\n",
                     kFreezeTraceFormat, kFreezeTraceVersion, json_string(trace.model_hash), blocks,
                     trace.steps, whole, trace.batch_size, provenance);
}

std::string event_line(const FreezeEvent& event, std::size_t blocks) {
  const MemberWriter writer{event.step, blocks};
  return fmt::format("{{\"step\":{},{}}}\n", event.step, std::visit(writer, event.what));
}

std::string to_jsonl(const FreezeTrace& trace) {
  std::string text = header_line(trace);
  Step last_step = 0;
  for (const FreezeEvent& event : trace.events) {
    ENSURE(event.step >= last_step, "the steps of a freeze trace never decrease");
    last_step = event.step;
    text += event_line(event, trace.blocks.size());
  }
  return text;
}

}  // namespace frazil
