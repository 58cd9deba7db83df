#pragma once
// Keeps the freeze trace of a run while it lasts, and its log where one is asked for.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "exec/train/event_log.h"
#include "exec/train/train_options.h"
#include "traces/freeze_trace.h"

namespace frazil {

// The trace of a run of so many steps, without events.
FreezeTrace describe_run(const TrainOptions& options, Step steps, const ComputeDevices& devices);

class TraceRecorder {
 public:
  // `header`: a trace without events. `log`: the place of the event log; empty: none.
  TraceRecorder(FreezeTrace header, std::filesystem::path log)
      : trace_(std::move(header)), place_(std::move(log)) {}

  // The run goes on with this step: trace and log with what the log has of the steps before. False
  // where it has not all of that, or there is none: they begin with `masks`, those so far, then.
  bool go_on(Step first, const std::vector<FreezeEvent>& masks);
  std::size_t count_plans() const;  // so far

  void note(const FreezeEvent& event);  // in the trace and the log
  void log(const FreezeEvent& event);   // in the log alone

  // Steps whose costs are added up: until the next end_stretch. They are noted where their stretch
  // began, before the events of later steps.
  void begin_stretch(Step first);
  void add_step(std::int64_t samples, Duration time);
  void end_stretch();

  // Why the log has ended before the run, in a sentence, once.
  std::optional<std::string> take_failure() { return std::exchange(failure_, std::nullopt); }
  FreezeTrace take_trace() { return std::move(trace_); }
  std::map<std::string, std::string>& provenance() { return trace_.provenance; }

 private:
  void begin_log();

  FreezeTrace trace_;
  std::filesystem::path place_;  // empty: not logged, or no more
  std::optional<EventLog> log_;  // from the first event on
  std::optional<std::string> failure_;
  std::vector<FreezeEvent> before_;  // what the log begins with
  Step stretch_first_ = 0;
  std::size_t stretch_place_ = 0;
  CostEvent stretch_;
};

}  // namespace frazil
