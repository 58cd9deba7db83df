#include "analysis/run_answer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/foreign_cores.h"
#include "analysis/tables/table.h"
#include "analysis/tables/time_table.h"
#include "planner/answers/print_idle.h"
#include "planner/prediction/answer_parts.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

// Returns "the start and 2 transitions".
std::string name_transitions(const RunSummary& run) {
  const std::string count = count_of(run.transition_count, "transition");
  if (run.starts == 0) return count;
  const std::string starts = run.starts == 1 ? "the start" : fmt::format("{} starts", run.starts);
  return run.transition_count == 0 ? starts : starts + " and " + count;
}

std::string text_or_dash(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

std::optional<double> ms_of(std::optional<double> nanoseconds) {
  if (nanoseconds) *nanoseconds /= 1e6;
  return nanoseconds;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Table tabulate_phases(const RunSummary& run) {
  Table table{.header = {"from step", "steps", "plan", "predicted ms", "measured ms", "ratio",
                         "predicted samples/s", "measured samples/s"},
              .rows = {}};
  const bool extrapolates = run.extrapolates();
  if (extrapolates) table.header.push_back("");
  for (const PhaseSummary& phase : run.phases) {
    table.rows.push_back({std::to_string(phase.first_step), std::to_string(phase.steps), phase.plan,
                          text_or_dash(to_ms(phase.predicted_step), 3),
                          text_or_dash(ms_of(phase.measured_step_ns()), 3),
                          text_or_dash(phase.ratio(), 3), text_or_dash(phase.predicted_rate(), 1),
                          text_or_dash(phase.measured_rate(), 1)});
    if (extrapolates) table.rows.back().push_back(phase.extrapolated ? "extrapolated" : "");
  }
  return table;
}

// Returns where the time of each phase's steps went, and which steps that is a mean of.
std::string tell_times(const RunSummary& run) {
  std::vector<PhaseTimes> phases;
  std::string samples;
  for (const PhaseSummary& phase : run.phases) {
    if (!phase.predicted_time) continue;
    phases.push_back({phase.first_step, *phase.predicted_time, phase.measured_time});
    if (!phase.sampled) continue;
    samples += fmt::format("{}{} of the phase from step {}", samples.empty() ? "measured: " : "; ",
                           describe(*phase.sampled), phase.first_step);
  }
  if (phases.empty()) return "";
  return "where the time of a step goes, ms, mean of the devices\n" +
         to_text(tabulate_times(phases)) + (samples.empty() ? "" : samples + "\n");
}

Json time_json(const TimeSplit& split) {
  Json json = Json::object();
  for (const TimePart& part : kTimeParts) {
    json[std::string(part.key)] = (split.parts.*part.part).count();
  }
  json["between_actions_ns"] = split.between.count();
  json["bubble"] = split.bubble();
  return json;
}

Json sampling_json(const SampledSteps& sampled) {
  return {{"steps", sampled.count}, {"first", sampled.first}, {"last", sampled.last}};
}

}  // namespace

std::vector<std::string> list_notes(const RunSummary& run) {
  std::vector<std::string> notes;
  if (std::string note = tell_foreign_cores(run.foreign_cores); !note.empty()) {
    notes.push_back("note: " + std::move(note));
  }
  for (const PhaseSummary& phase : run.phases) {
    if (std::string note = tell_uncovered(phase); !note.empty()) {
      notes.push_back("note: " + std::move(note));
    }
  }
  notes.insert(notes.end(), run.doubts.begin(), run.doubts.end());
  return notes;
}

std::string to_text(const RunSummary& run) {
  const auto seconds = [](Duration time) { return static_cast<double>(time.count()) / 1e9; };
  std::string text =
      fmt::format("{}: {}, {} samples in {:.3f} s ({:.3f} s of it in {}), {} samples/s", run.name,
                  count_of(run.steps, "step"), run.samples, seconds(run.total()),
                  seconds(run.transitions), name_transitions(run), text_or_dash(run.rate(), 1));
  if (run.last_eval) {
    const auto& [accuracy, validation] =
        std::tie(run.last_eval->accuracy, run.last_eval->validation);
    if (accuracy) text += fmt::format(", accuracy {:.2f} %", 100 * *accuracy);
    if (validation && validation->accuracy) {
      text += fmt::format(", validation accuracy {:.2f} %", 100 * *validation->accuracy);
    }
  }
  text += "\n";
  if (run.interrupted_after) text += tell_interrupted(run) + "\n";
  if (!run.other_bits.empty()) text += run.other_bits + "\n";
  if (!run.model_check.empty()) text += run.model_check + "\n";
  for (const std::string& note : list_notes(run)) text += note + "\n";
  if (run.phases.empty()) return text;
  text += to_text(tabulate_phases(run));
  if (run.extrapolates()) text += std::string(explain_extrapolated()) + "\n";
  if (run.unmeasured_steps > 0) text += tell_unmeasured(run) + "\n";
  if (run.regret) text += tell_regret(*run.regret) + "\n";
  text += tell_times(run);
  std::vector<std::pair<Step, const MemoryRecord*>> memories;
  for (const PhaseSummary& phase : run.phases) {
    if (phase.memory) memories.emplace_back(phase.first_step, &*phase.memory);
  }
  if (memories.empty()) return text;
  return text + "memory of a step, predicted / measured where they differ (process: " +
         to_text(memories.back().second->process_peak_resident) + " resident at most)\n" +
         to_text(tabulate_memory(memories)) + std::string(explain_allocator()) + "\n";
}

std::string to_json(const std::vector<RunSummary>& runs) {
  Json list = Json::array();
  for (const RunSummary& run : runs) {
    Json phases = Json::array();
    for (const PhaseSummary& phase : run.phases) {
      phases.push_back({{"first_step", phase.first_step},
                        {"steps", phase.steps},
                        {"samples", phase.samples},
                        {"plan", phase.plan},
                        {"predicted_step_ns", phase.predicted_step.count()},
                        {"measured_step_ns", number_or_null(phase.measured_step_ns())},
                        {"ratio", number_or_null(phase.ratio())}});
      if (phase.extrapolated) phases.back()["extrapolated"] = true;
      if (phase.sampled) phases.back()["sampled"] = sampling_json(*phase.sampled);
      if (phase.predicted_time) phases.back()["predicted_time"] = time_json(*phase.predicted_time);
      if (phase.measured_time) phases.back()["measured_time"] = time_json(*phase.measured_time);
      if (phase.memory) phases.back()["memory"] = Json::parse(peaks_json(*phase.memory));
    }
    Json item = {{"name", run.name},
                 {"steps", run.steps},
                 {"unmeasured_steps", run.unmeasured_steps},
                 {"samples", run.samples},
                 {"training_ns", run.training.count()},
                 {"transitions_ns", run.transitions.count()},
                 {"transitions", run.transition_count},
                 {"samples_per_second", number_or_null(run.rate())},
                 {"prediction_error", number_or_null(run.prediction_error())}};
    if (!run.other_bits.empty()) item["other_bits"] = run.other_bits;
    if (!run.model_check.empty()) item["model_file"] = run.model_check;
    if (run.interrupted_after) {
      item["interrupted_after_step"] = *run.interrupted_after;
      item["all_steps"] = run.all_steps;
    }
    if (run.regret) item["plans"] = Json::parse(regret_json(*run.regret));
    if (run.foreign_cores) item["foreign_cores"] = *run.foreign_cores;
    if (const auto notes = list_notes(run); !notes.empty()) item["notes"] = notes;
    if (run.last_eval) {
      item["loss"] = run.last_eval->loss;
      if (run.last_eval->accuracy) item["accuracy"] = *run.last_eval->accuracy;
      if (const auto& validation = run.last_eval->validation) {
        item["validation_loss"] = validation->loss;
        if (validation->accuracy) item["validation_accuracy"] = *validation->accuracy;
      }
    }
    item["phases"] = phases;
    list.push_back(item);
  }
  return Json{{"runs", list}}.dump(2) + "\n";
}

}  // namespace frazil
