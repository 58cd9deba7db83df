#include "planner/reproduce/sailor/sailor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "profiles/error.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Duration> take_measured(const std::vector<SailorPlan>& plans) {
  std::vector<Duration> measured;
  for (const SailorPlan& plan : plans) {
    if (!plan.iteration) throw InputError(plan.name, 0, "no measured iteration", "\"real\"");
    measured.push_back(*plan.iteration);
  }
  if (measured.size() < 3) {
    throw InputError("plans", 0, fmt::format("{} of them", measured.size()), "at least three");
  }
  return measured;
}

double percent(double share) { return 100 * share; }

double gibibytes(Bytes bytes) {
  return static_cast<double>(bytes.count) / static_cast<double>(1 << 30);
}

std::string print_row(const SailorReport& report, std::size_t i) {
  const SailorPlan& plan = report.plans[i];
  const auto seconds = [](Duration time) { return static_cast<double>(time.count()) / 1e9; };
  return fmt::format(
      "{:<28} {:>2}x{:<2} {:>3} {:>5} {:>9.4f} {:>9.4f} {:>+7.2f} {:>9.4f} {:>+7.2f} {:>6.1f} "
      "{:>6}\n",
      plan.name, plan.stages.size(), plan.replicas, plan.micro_batch_size, plan.batch_size,
      seconds(*plan.iteration), seconds(report.uncalibrated[i]),
      percent(relative_error(report.uncalibrated[i], *plan.iteration)),
      seconds(report.chosen.predicted[i]),
      percent(relative_error(report.chosen.predicted[i], *plan.iteration)),
      gibibytes(report.peak_memory[i]),
      plan.peak_memory ? fmt::format("{:.1f}", gibibytes(*plan.peak_memory)) : "-");
}

// Prints by how much the measured peak memory exceeds the predicted one. No prediction contains
// memory that the profiles do not list, such as what a process itself uses on its device.
std::string print_unseen_memory(const SailorReport& report) {
  std::vector<Bytes> above;
  for (std::size_t i = 0; i < report.plans.size(); ++i) {
    if (const auto seen = report.plans[i].peak_memory)
      above.push_back(*seen - report.peak_memory[i]);
  }
  if (above.empty()) return "";
  const auto [least, most] = std::minmax_element(above.begin(), above.end());
  return fmt::format(
      "\npeak memory: the model's is the tensors of a step as the profile lists them, nothing else "
      "of the process;\nwhat was seen is {:.1f} to {:.1f} GiB above it\n",
      gibibytes(*least), gibibytes(*most));
}

std::string print_errors(const char* name, const ErrorSummary& errors) {
  return fmt::format("{:<34} {:>8.2f} {:>8.2f} {:>8.2f}\n", name, percent(errors.mean),
                     percent(errors.median), percent(errors.largest));
}

// Prints the errors of the form that is chosen, and of each form, where some plans are left out.
std::string print_left_out(const SailorReport& report, const char* title, const ChosenForms& chosen,
                           const CrossValidation& (*of_form)(const FormReport&)) {
  std::string text = print_errors(title, summarize_errors(report.plans, chosen.predicted));
  for (const FormReport& form : report.forms) {
    const std::string name = fmt::format("  {}", form.name);
    text += print_errors(name.c_str(), summarize_errors(report.plans, of_form(form).predicted));
  }
  return text;
}

std::string print_constants(const FormReport& form) {
  std::string text;
  for (std::size_t c = 0; c < form.from_all.size(); ++c) {
    double least = form.from_all[c].value;
    double most = least;
    for (const std::vector<NamedConstant>& own : form.constants) {
      least = std::min(least, own[c].value);
      most = std::max(most, own[c].value);
    }
    const NamedConstant& constant = form.from_all[c];
    text += fmt::format("{:<16} {:<26} {:>9.2f} {:>9.2f} {:>9.2f}  {}\n", c == 0 ? form.name : "",
                        constant.key, least, most, constant.value, constant.does);
  }
  return text;
}

Json errors_json(const ErrorSummary& errors) {
  return {{"mean", errors.mean}, {"median", errors.median}, {"max", errors.largest}};
}

Json constants_json(const std::vector<NamedConstant>& constants) {
  Json json;
  for (const NamedConstant& constant : constants) json[constant.key] = constant.value;
  return json;
}

Json forms_json(const SailorReport& report) {
  Json forms = Json::array();
  for (const FormReport& form : report.forms) {
    const auto errors = [&](const std::vector<Duration>& predicted) {
      return errors_json(summarize_errors(report.plans, predicted));
    };
    Json json = {{"form", form.name},
                 {"leave_one_out", errors(form.one_out.predicted)},
                 {"leave_size_out", nullptr},
                 {"in_sample", errors(form.one_out.in_sample)},
                 {"constants_from_all", constants_json(form.from_all)}};
    if (form.size_out) json["leave_size_out"] = errors(form.size_out->predicted);
    forms.push_back(std::move(json));
  }
  return forms;
}

// Returns for each plan the number of its devices, GPUs that share a stage by tensor parallelism
// counted as one.
std::vector<int> count_devices(const std::vector<SailorPlan>& plans) {
  std::vector<int> devices;
  for (const SailorPlan& plan : plans) {
    devices.push_back(static_cast<int>(plan.stages.size()) * plan.replicas);
  }
  return devices;
}

FormReport report_form(const SailorForm& form, const std::vector<Duration>& measured,
                       const std::vector<int>& devices, bool by_size) {
  FormReport report{.name = form.name,
                    .one_out = leave_one_out(form.model, measured),
                    .size_out = std::nullopt,
                    .constants = {},
                    .from_all = {}};
  if (by_size) report.size_out = leave_groups_out(form.model, measured, devices);
  for (const Choice& choice : report.one_out.choices) {
    report.constants.push_back(form.constants(choice));
  }
  report.from_all = form.constants(report.one_out.from_all);
  return report;
}

}  // namespace

double relative_error(Duration predicted, Duration measured) {
  return static_cast<double>(predicted.count()) / static_cast<double>(measured.count()) - 1;
}

ErrorSummary summarize_errors(const std::vector<SailorPlan>& plans,
                              const std::vector<Duration>& predicted) {
  std::vector<double> errors;
  double sum = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    errors.push_back(std::abs(relative_error(predicted[i], *plans[i].iteration)));
    sum += errors.back();
  }
  std::sort(errors.begin(), errors.end());
  return {.mean = sum / static_cast<double>(errors.size()),
          .median = errors[errors.size() / 2],
          .largest = errors.back()};
}

SailorReport make_sailor_report(const SailorFolder& folder) {
  const std::vector<Duration> measured = take_measured(folder.plans);
  const SailorPredictor predictor(folder);
  SailorReport report;
  report.model = folder.config.model;
  report.gpu = folder.gpu;
  report.sailors_own = find_sailors_own(folder);
  report.plans = folder.plans;
  report.uncalibrated = predictor.predict({});
  const std::vector<int> devices = count_devices(folder.plans);
  const bool by_size = std::set<int>(devices.begin(), devices.end()).size() >= 3;
  std::vector<FittedModel> models;
  for (const SailorForm& form : list_forms(predictor, folder)) {
    report.forms.push_back(report_form(form, measured, devices, by_size));
    models.push_back(form.model);
  }
  std::vector<int> apart(measured.size());
  std::iota(apart.begin(), apart.end(), 0);
  report.chosen = choose_forms(models, measured, apart);
  if (by_size) report.chosen_by_size = choose_forms(models, measured, devices);
  report.peak_memory = predictor.peak_memory();
  report.suspects = find_suspect_values(folder.plans);
  return report;
}

std::string print_sailor_report(const SailorReport& report) {
  std::string text =
      fmt::format("{} on {}, {} measured plans{}\n\n", report.model, report.gpu,
                  report.plans.size(), report.sailors_own ? ": those that came with Sailor" : "");
  text += fmt::format(
      "{:<28} {:>5} {:>3} {:>5} {:>9} {:>17} {:>17} {:>13}\n"
      "{:<28} {:>5} {:>3} {:>5} {:>9} {:>9} {:>7} {:>9} {:>7} {:>6} {:>6}\n",
      "", "", "", "", "measured", "uncalibrated", "leave-one-out", "peak GiB", "plan", "SxR", "mbs",
      "batch", "s", "s", "%", "s", "%", "model", "seen");
  for (std::size_t i = 0; i < report.plans.size(); ++i) text += print_row(report, i);
  text +=
      fmt::format("\n{:<34} {:>8} {:>8} {:>8}\n", "absolute error in %", "mean", "median", "max");
  text += print_errors("uncalibrated", summarize_errors(report.plans, report.uncalibrated));
  text +=
      print_left_out(report, "one plan left out, form chosen", report.chosen,
                     [](const FormReport& form) -> const CrossValidation& { return form.one_out; });
  if (report.chosen_by_size) {
    text += print_left_out(
        report, "one size left out, form chosen", *report.chosen_by_size,
        [](const FormReport& form) -> const CrossValidation& { return *form.size_out; });
  }
  if (report.sailors_own) text += print_errors("Sailor's own simulator", *report.sailors_own);
  text += print_unseen_memory(report);
  text += fmt::format("\n{:<16} {:<26} {:>9} {:>9} {:>9}\n", "form", "constant, without one plan",
                      "least", "most", "all plans");
  for (const FormReport& form : report.forms) text += print_constants(form);
  if (!report.suspects.empty()) text += "\n";
  for (const std::string& suspect : report.suspects) {
    text += fmt::format("looks copied, not used: {}\n", suspect);
  }
  return text;
}

std::string sailor_report_json(const SailorReport& report) {
  Json plans = Json::array();
  for (std::size_t i = 0; i < report.plans.size(); ++i) {
    const SailorPlan& plan = report.plans[i];
    Json row = {
        {"plan", plan.name},
        {"stages", plan.stages.size()},
        {"replicas", plan.replicas},
        {"micro_batch_size", plan.micro_batch_size},
        {"batch_size", plan.batch_size},
        {"measured_ns", plan.iteration->count()},
        {"uncalibrated_ns", report.uncalibrated[i].count()},
        {"uncalibrated_error", relative_error(report.uncalibrated[i], *plan.iteration)},
        {"leave_one_out_ns", report.chosen.predicted[i].count()},
        {"leave_one_out_error", relative_error(report.chosen.predicted[i], *plan.iteration)},
        {"predicted_peak_bytes", report.peak_memory[i].count},
        {"form", report.forms[report.chosen.forms[i]].name},
        {"constants", constants_json(report.forms[report.chosen.forms[i]].constants[i])}};
    if (plan.peak_memory) row["measured_peak_bytes"] = plan.peak_memory->count;
    plans.push_back(std::move(row));
  }
  const Json answer = {
      {"model", report.model},
      {"gpu", report.gpu},
      {"plans", plans},
      {"absolute_error",
       {{"uncalibrated", errors_json(summarize_errors(report.plans, report.uncalibrated))},
        {"leave_one_out", errors_json(summarize_errors(report.plans, report.chosen.predicted))},
        {"leave_size_out",
         report.chosen_by_size
             ? errors_json(summarize_errors(report.plans, report.chosen_by_size->predicted))
             : Json()},
        {"sailor", report.sailors_own ? errors_json(*report.sailors_own) : Json()}}},
      {"forms", forms_json(report)},
      {"suspects", report.suspects}};
  return answer.dump(2) + "\n";
}

}  // namespace frazil
