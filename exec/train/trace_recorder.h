#pragma once
// TraceRecorder keeps the freeze trace of a run while it lasts, and its event log where one is
// asked for.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "exec/train/event_log.h"
#include "exec/train/train_options.h"
#include "traces/freeze_trace.h"

namespace frazil {

// Returns the trace of a run of so many steps, without events.
FreezeTrace describe_run(const TrainOptions& options, Step steps, const ComputeDevices& devices);

class TraceRecorder {
 public:
  // `header`: a trace without events. `log`: the place of the event log; empty: none.
  TraceRecorder(FreezeTrace header, std::filesystem::path log)
      : trace_(std::move(header)), place_(std::move(log)) {}

  // Begins with this step. Trace and log begin with what the log has of the steps before. If it
  // lacks some of them, or there is no log, both begin with `masks`, the masks so far. Returns a
  // sentence if anything of the log is lost; the file is then kept beside the new one.
  std::optional<std::string> go_on(Step first, const std::vector<FreezeEvent>& masks);
  std::size_t count_plans() const;  // so far

  void note(const FreezeEvent& event);  // in the trace and the log
  void log(const FreezeEvent& event);   // in the log alone

  // Add up the costs of steps until the next end_stretch(). The costs are noted where their stretch
  // began, before the events of later steps.
  void begin_stretch(Step first);
  void add_step(std::int64_t samples, Duration time);
  void end_stretch();

  // Returns, once, why the log has ended before the run, in a sentence.
  std::optional<std::string> take_failure() { return std::exchange(failure_, std::nullopt); }
  FreezeTrace take_trace() { return std::move(trace_); }
  std::map<std::string, std::string>& provenance() { return trace_.provenance; }

 private:
  void begin_log();

  FreezeTrace trace_;
  std::filesystem::path place_;  // empty: not logged, or not after a failure
  std::optional<EventLog> log_;  // from the first event on
  std::optional<std::string> failure_;
  std::vector<FreezeEvent> before_;  // what the log begins with
  Step stretch_first_ = 0;
  std::size_t stretch_place_ = 0;
  CostEvent stretch_;
};

}  // namespace frazil
