#include "analysis/guard/guard_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/foreign_cores.h"
#include "analysis/guard/baseline_json.h"
#include "analysis/tables/table.h"
#include "analysis/verification.h"
#include "planner/verbs/command_line.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

std::string_view word_of(Direction direction) {
  switch (direction) {
    case Direction::kNone:
      return "";
    case Direction::kSlower:
      return "slower";
    case Direction::kFaster:
      return "faster";
  }
  ENSURE(false, "unknown direction");
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string longer(const Movement& movement) {
  return fmt::format("{} longer (alarm beyond {})", percent(movement.own_ratio - 1),
                     percent(movement.bar));
}

// One clause about what is slower.
std::string tell(const Movement& movement) {
  switch (movement.kind) {
    case GuardedKind::kHost:
      return "the host: half of its layers or more take at least " + longer(movement);
    case GuardedKind::kLayer:
      return fmt::format("layer {}: beside the other layers it takes {}", movement.name,
                         longer(movement));
    case GuardedKind::kLink:
      return fmt::format("link {}: beside the layers it takes {}", movement.name, longer(movement));
    case GuardedKind::kPrediction:
      return "the step, beside what its layers predict, takes " + longer(movement);
    case GuardedKind::kStep:
      return fmt::format("{} takes {}", movement.name == "step" ? "the step" : movement.name,
                         longer(movement));
  }
  ENSURE(false, "unknown kind of guarded thing");
}

std::string value_text(GuardedKind kind, double value) {
  if (kind == GuardedKind::kHost) return "";
  if (kind == GuardedKind::kPrediction) return fmt::format("{:.3f}", value);
  return fmt::format("{:.3f} ms", value / 1e6);
}

std::string list_unsteady(const std::vector<Movement>& movements) {
  std::string names;
  for (const Movement& movement : movements) {
    if (!is_too_unsteady(movement)) continue;
    names += (names.empty() ? "" : ", ") + movement.name;
  }
  return names;
}

struct Change {
  std::string key, was, is;
};

std::string read_fact(const Provenance& facts, const std::string& key) {
  const auto fact = facts.find(key);
  return fact == facts.end() ? "unknown" : fact->second;
}

// The date differs always. The load of other programs is told even if it is the same.
std::vector<Change> find_changes(const GuardReport& report) {
  Provenance keys = report.was;
  keys.insert(report.is.begin(), report.is.end());
  std::vector<Change> changes;
  for (const auto& fact : keys) {
    const std::string& key = fact.first;
    Change change{key, read_fact(report.was, key), read_fact(report.is, key)};
    const bool differs = key != "date" && change.was != change.is;
    if (differs || key == kForeignCores) changes.push_back(std::move(change));
  }
  return changes;
}

Json to_json(const Movement& movement) {
  Json json = {{"kind", name_of(movement.kind)}, {"name", movement.name}};
  if (movement.kind != GuardedKind::kHost) {
    json["baseline"] = movement.baseline;
    json["today"] = movement.today;
    json["blocks"] = movement.blocks;
  }
  json["ratio"] = movement.ratio;
  json["own_ratio"] = movement.own_ratio;
  json["bar"] = movement.bar;
  json["moved"] = movement.moved == Direction::kNone ? "no" : word_of(movement.moved);
  return json;
}

Json to_json(const std::vector<GuardedValue>& things) {
  Json list = Json::array();
  for (const GuardedValue& thing : things) {
    list.push_back({{"kind", name_of(thing.kind)}, {"name", thing.name}});
  }
  return list;
}

Json to_json(const std::vector<Movement>& movements) {
  Json list = Json::array();
  for (const Movement& movement : movements) list.push_back(to_json(movement));
  return list;
}

Json to_json(const std::vector<OpenMovement>& open) {
  Json list = Json::array();
  for (const OpenMovement& one : open) {
    list.push_back(to_json(one.movement));
    list.back()["reason"] = one.reason;
  }
  return list;
}

Json reason_json(const std::string& reason) { return reason.empty() ? Json() : Json(reason); }

std::string tell_kept(const Baseline& baseline, const std::string& file) {
  double noise = 0;
  for (const GuardedValue& value : baseline.values) noise = std::max(noise, value.noise);
  return fmt::format(
      "wrote baseline {}: {} things, noise up to {}; nothing was compared, and --baseline compares "
      "a later day with it\n",
      file, baseline.values.size(), percent(noise));
}

}  // namespace

std::string print_guard(const GuardReport& report) {
  Table table{{"what", "name", "baseline", "today", "ratio", "own ratio", "bar", "moved"}, {}};
  for (const Movement& row : report.movements) {
    table.rows.push_back({std::string(name_of(row.kind)), row.name,
                          value_text(row.kind, row.baseline), value_text(row.kind, row.today),
                          fmt::format("{:.3f}", row.ratio), fmt::format("{:.3f}", row.own_ratio),
                          percent(row.bar), std::string(word_of(row.moved))});
  }
  std::string text = to_text(table);
  for (const Movement& alarm : report.conclusion.alarms) {
    const bool is_step = alarm.kind == GuardedKind::kStep;
    text += tell(alarm) + (is_step ? ", though no layer, link or host is an alarm\n" : "\n");
  }
  for (const OpenMovement& open : report.conclusion.unconfirmed) {
    text += fmt::format("not confirmed: {}; {}\n", tell(open.movement), open.reason);
  }
  const std::string unsteady = list_unsteady(report.movements);
  if (!unsteady.empty()) {
    text += fmt::format("too unsteady to be guarded closely (noise above {}): {}\n",
                        percent(kLargestBar / 2), unsteady);
  }
  for (const GuardedValue& thing : report.missing) {
    text += fmt::format("not measured today, though in the baseline: {}\n",
                        name_thing(thing.kind, thing.name));
  }
  for (const GuardedValue& thing : report.added) {
    text += fmt::format("measured today, though not in the baseline: {}\n",
                        name_thing(thing.kind, thing.name));
  }
  for (const Change& change : find_changes(report)) {
    text +=
        fmt::format("fingerprint: {} was \"{}\", is \"{}\"\n", change.key, change.was, change.is);
  }
  return text + tell_verdict(report.conclusion.verdict, report.conclusion.reason);
}

std::string guard_json(const GuardReport& report) {
  Json answer = {{"verdict", verdict_name(report.conclusion.verdict)},
                 {"reason", reason_json(report.conclusion.reason)},
                 {"baseline", report.baseline_file},
                 {"alarms", to_json(report.conclusion.alarms)},
                 {"unconfirmed", to_json(report.conclusion.unconfirmed)},
                 {"missing", to_json(report.missing)},
                 {"added", to_json(report.added)},
                 {"fingerprint_changes", Json::array()},
                 {"movements", to_json(report.movements)}};
  for (const Change& change : find_changes(report)) {
    answer["fingerprint_changes"].push_back(
        {{"key", change.key}, {"was", change.was}, {"is", change.is}});
  }
  return answer.dump(2) + "\n";
}

ExitCode keep_baseline(const Baseline& baseline, const std::string& reason, const std::string& file,
                       bool as_json) {
  const bool keeps = reason.empty();
  std::string answer = keeps ? tell_kept(baseline, file)
                             : "wrote no baseline\n" + tell_verdict(Verdict::kInconclusive, reason);
  if (as_json) {
    const Json verdict = keeps ? Json() : Json(verdict_name(Verdict::kInconclusive));
    answer = Json{{"verdict", verdict},
                  {"reason", reason_json(reason)},
                  {"baseline", file},
                  {"wrote_baseline", keeps},
                  {"values", baseline.values.size()}}
                 .dump(2) +
             "\n";
  }
  write_and_answer(
      [&] {
        if (keeps) write_baseline(baseline, file);
      },
      answer);
  return keeps ? ExitCode::kOk : ExitCode::kVerifyInconclusive;
}

ExitCode exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return ExitCode::kOk;
    case Verdict::kFail:
      return ExitCode::kVerifyFailed;
    case Verdict::kInconclusive:
      return ExitCode::kVerifyInconclusive;
  }
  ENSURE(false, "unknown verdict");
}

}  // namespace frazil
