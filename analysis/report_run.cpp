#include "analysis/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "analysis/foreign_cores.h"
#include "planner/prediction/answer_parts.h"
#include "planner/prediction/doubts.h"
#include "profiles/error.h"
#include "profiles/model_profile_json.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"
#include "traces/log_costs.h"
#include "traces/timeline_csv.h"

namespace frazil {
namespace {

// Returns the trace of a run that has ended, else the log of one that was interrupted.
std::filesystem::path find_record(const std::filesystem::path& root) {
  std::filesystem::path trace = root / "trace.jsonl";
  std::filesystem::path log = root / "events.jsonl";
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) {
    const bool is_there = std::filesystem::exists(root, error);
    throw InputError(root.string(), 0, is_there ? "a file" : "no such folder",
                     "the folder that `frazil train --out` was given");
  }
  if (std::filesystem::exists(trace, error)) return trace;
  if (std::filesystem::exists(log, error)) return log;
  throw InputError(
      root.string(), 0, "neither trace.jsonl nor events.jsonl",
      "the folder that `frazil train --out` was given: trace.jsonl is there when a run has "
      "ended, events.jsonl while it lasts");
}

// Reads a trace or a log. A line of a log that was being written when the run ended is left out,
// and the costs of its steps are added up.
FreezeTrace read_record(const std::filesystem::path& record) {
  std::string text = read_text_file(record);
  const bool is_log = record.filename() == "events.jsonl";
  if (is_log) text.resize(text.rfind('\n') + 1);
  FreezeTrace trace = parse_freeze_trace(text, record.string());
  if (is_log) trace.events = add_costs(trace);
  return trace;
}

// Drops steps that were done again under another plan, after a crash.
void drop_steps(Timeline& measured, Step from) {
  std::erase_if(measured.spans, [&](const Span& span) { return span.action.step >= from; });
}

// Returns the first of the files without which a phase says nothing that is not there, or "".
std::string find_missing(const std::filesystem::path& place) {
  std::error_code error;
  for (const char* const name : {"predicted.csv", "measured.csv"}) {
    if (!std::filesystem::exists(place / name, error)) return name;
  }
  return "";
}

// Reads a phase; all but its first step and its plan are left out where a time line is missing.
ReportPhase read_phase(Step first, const PlanEvent& plan, const std::filesystem::path& place) {
  ReportPhase phase{.first_step = first,
                    .summary = plan.summary.empty() ? plan.plan : plan.summary,
                    .predicted = {},
                    .measured = {}};
  if (!find_missing(place).empty()) return phase;
  phase.predicted = read_prediction(place / "predicted.csv");
  phase.measured = read_timeline_csv(place / "measured.csv");
  phase.clock_uncertainty = read_clock_uncertainty(place / "measured.csv");
  phase.memory = read_memory_record(place / "memory.json");
  std::error_code error;
  if (std::filesystem::exists(place / "trace.json", error)) phase.trace_file = place / "trace.json";
  return phase;
}

// Returns what to say of a phase whose time lines are left out; "" if all is there, or if the run
// was interrupted before it wrote the phase.
std::string tell_left_out(Step first, const std::filesystem::path& place, bool is_open) {
  std::error_code error;
  const std::string missing = find_missing(place);
  if (missing.empty() || (is_open && !std::filesystem::exists(place, error))) return "";
  const std::string name = place.filename().string();
  return fmt::format("note: the time lines of the phase from step {} are left out: {} has no {}",
                     first, name, missing);
}

// Returns how sure measured times of different processes are beside each other; "" for a run of one
// process.
std::string tell_clocks(const std::vector<ReportPhase>& phases) {
  std::optional<Duration> most;
  for (const ReportPhase& phase : phases) {
    if (phase.clock_uncertainty) most = std::max(*phase.clock_uncertainty, most.value_or(kNoTime));
  }
  if (!most) return "";
  return fmt::format(
      "note: measured times of different processes are sure to within {} beside each "
      "other",
      to_text(*most));
}

// Returns what the predictions of the run rest on that was not measured, or not on a quiet machine.
std::vector<std::string> list_profile_doubts(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const ModelProfile profile = read_model_profile(file);
  std::vector<std::string> doubts;
  std::istringstream lines(list_flags(profile, false) + fits_if(profile, "note: its plans fit"));
  for (std::string line; std::getline(lines, line);) doubts.push_back(line);
  if (const std::string busy = tell_foreign_cores(find_foreign_cores(profile.provenance));
      !busy.empty()) {
    doubts.push_back("note: the profile behind the predictions: " + busy);
  }
  return doubts;
}

}  // namespace

ReportRun read_run(const std::string& folder) {
  const std::filesystem::path root(folder);
  ReportRun run;
  const std::filesystem::path full = std::filesystem::absolute(root).lexically_normal();
  run.name = (full.has_filename() ? full : full.parent_path()).filename().string();
  const std::filesystem::path record = find_record(root);
  run.trace = read_record(record);
  for (const FreezeEvent& event : run.trace.events) {
    if (const auto* plan = std::get_if<PlanEvent>(&event.what)) {
      const auto place = root / fmt::format("phase-{}", run.phases.size());
      if (!run.phases.empty()) drop_steps(run.phases.back().measured, event.step);
      run.phases.push_back(read_phase(event.step, *plan, place));
      if (std::string note = tell_left_out(event.step, place, run.trace.open); !note.empty()) {
        run.doubts.push_back(std::move(note));
      }
    }
  }
  for (std::string& doubt : list_profile_doubts(root / "inputs" / "model.json")) {
    run.doubts.push_back(std::move(doubt));
  }
  if (std::string note = tell_clocks(run.phases); !note.empty()) {
    run.doubts.push_back(std::move(note));
  }
  if (run.phases.empty()) {
    throw InputError(record.string(), 0, "no plan", "the record of a run, which begins with one");
  }
  return run;
}

RunSummary summarize(const ReportRun& run) {
  RunSummary summary = summarize(run.name, run.trace);
  summary.doubts = run.doubts;
  for (std::size_t i = 0; i < std::min(run.phases.size(), summary.phases.size()); ++i) {
    const ReportPhase& phase = run.phases[i];
    PhaseSummary& told = summary.phases[i];
    told.memory = phase.memory;
    const Step window = count_window(phase.predicted);
    told.sampled = find_sampled(phase.measured, window);
    told.window = window;
    told.predicted_time = mean_split(phase.predicted, window);
    told.measured_time = mean_split(phase.measured, window);
  }
  return summary;
}

}  // namespace frazil
