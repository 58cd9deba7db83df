#include "planner/reproduce/sailor/sailor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "profiles/error.h"

namespace frazil {
namespace {

using Json = nlohmann::ordered_json;

// The values that a fit may take for each constant. Every fit begins as measured: at factors of 1
// and without overhead.
struct ConstantLists {
  std::vector<double> fixed = count_up(0.70, 0.05, 13);
  std::vector<double> per_sample = count_up(0.80, 0.02, 16);
  std::vector<double> reduction = count_up(0.10, 0.10, 10);
  std::vector<Duration> overhead = count_overheads();

  static std::vector<double> count_up(double first, double step, int count) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) values.push_back(std::round((first + i * step) * 100) / 100);
    return values;
  }
  static std::vector<Duration> count_overheads() {
    std::vector<Duration> values;
    for (int i = 0; i <= 16; ++i) values.push_back(i * std::chrono::microseconds(250));
    return values;
  }

  std::vector<std::size_t> sizes() const {
    return {fixed.size(), per_sample.size(), reduction.size(), overhead.size()};
  }
  Choice find_measured() const {
    return {place(fixed, 1.0), place(per_sample, 1.0), place(reduction, 1.0),
            place(overhead, Duration{0})};
  }
  SailorConstants at(const Choice& choice) const {
    return {.fixed = fixed[choice[0]],
            .per_sample = per_sample[choice[1]],
            .reduction = reduction[choice[2]],
            .message_overhead = overhead[choice[3]]};
  }

 private:
  template <class Value>
  static std::size_t place(const std::vector<Value>& values, Value wanted) {
    const auto found = std::find(values.begin(), values.end(), wanted);
    ENSURE(found != values.end(), "a list without the measured value");
    return static_cast<std::size_t>(found - values.begin());
  }
};

std::vector<Duration> take_measured(const std::vector<SailorPlan>& plans) {
  std::vector<Duration> measured;
  for (const SailorPlan& plan : plans) {
    if (!plan.iteration) throw InputError(plan.name, 0, "no measured iteration", "\"real\"");
    measured.push_back(*plan.iteration);
  }
  if (measured.size() < 2) {
    throw InputError("plans", 0, fmt::format("{} plan", measured.size()), "at least two");
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
      seconds(report.validation.predicted[i]),
      percent(relative_error(report.validation.predicted[i], *plan.iteration)),
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

struct Range {
  double least = 0;
  double most = 0;
};

template <class Member>
Range find_range(const SailorReport& report, Member member) {
  Range range{member(report.constants.front()), member(report.constants.front())};
  for (const SailorConstants& constants : report.constants) {
    range.least = std::min(range.least, member(constants));
    range.most = std::max(range.most, member(constants));
  }
  return range;
}

// Names each constant once: its key, what it does, and how to read it.
struct NamedConstant {
  const char* key;
  const char* does;
  double (*read)(const SailorConstants&);
};

constexpr std::array kConstants = {
    NamedConstant{"fixed_share", "of a call's fixed cost",
                  [](const SailorConstants& c) { return c.fixed; }},
    NamedConstant{"per_sample_share", "of a call's cost per sample",
                  [](const SailorConstants& c) { return c.per_sample; }},
    NamedConstant{"reduction_bandwidth_share", "of the bandwidth between replicas",
                  [](const SailorConstants& c) { return c.reduction; }},
    NamedConstant{"message_overhead_ms", "ms per message between stages",
                  [](const SailorConstants& c) { return to_ms(c.message_overhead); }},
};

Json errors_json(const ErrorSummary& errors) {
  return {{"mean", errors.mean}, {"median", errors.median}, {"max", errors.largest}};
}

Json constants_json(const SailorConstants& constants) {
  Json json;
  for (const NamedConstant& constant : kConstants) json[constant.key] = constant.read(constants);
  return json;
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
  const ConstantLists lists;
  const FittedModel model{
      .list_sizes = lists.sizes(),
      .start = lists.find_measured(),
      .predict = [&](const Choice& choice) { return predictor.predict(lists.at(choice)); }};
  SailorReport report;
  report.model = folder.config.model;
  report.gpu = folder.gpu;
  report.sailors_own = find_sailors_own(folder);
  report.plans = folder.plans;
  report.uncalibrated = predictor.predict({});
  report.validation = leave_one_out(model, measured);
  for (const Choice& choice : report.validation.choices) {
    report.constants.push_back(lists.at(choice));
  }
  report.from_all = lists.at(report.validation.from_all);
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
      print_errors("leave-one-out", summarize_errors(report.plans, report.validation.predicted));
  text += print_errors("fitted to all, seen by the fit",
                       summarize_errors(report.plans, report.validation.in_sample));
  if (report.sailors_own) text += print_errors("Sailor's own simulator", *report.sailors_own);
  text += print_unseen_memory(report);
  text += fmt::format("\n{:<26} {:>9} {:>9} {:>9}\n", "constant, without one plan", "least", "most",
                      "all plans");
  for (const NamedConstant& constant : kConstants) {
    const Range range = find_range(report, constant.read);
    text += fmt::format("{:<26} {:>9.2f} {:>9.2f} {:>9.2f}  {}\n", constant.key, range.least,
                        range.most, constant.read(report.from_all), constant.does);
  }
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
        {"leave_one_out_ns", report.validation.predicted[i].count()},
        {"leave_one_out_error", relative_error(report.validation.predicted[i], *plan.iteration)},
        {"predicted_peak_bytes", report.peak_memory[i].count},
        {"constants", constants_json(report.constants[i])}};
    if (plan.peak_memory) row["measured_peak_bytes"] = plan.peak_memory->count;
    plans.push_back(std::move(row));
  }
  const Json answer = {
      {"model", report.model},
      {"gpu", report.gpu},
      {"plans", plans},
      {"absolute_error",
       {{"uncalibrated", errors_json(summarize_errors(report.plans, report.uncalibrated))},
        {"leave_one_out", errors_json(summarize_errors(report.plans, report.validation.predicted))},
        {"in_sample", errors_json(summarize_errors(report.plans, report.validation.in_sample))},
        {"sailor", report.sailors_own ? errors_json(*report.sailors_own) : Json()}}},
      {"constants_from_all", constants_json(report.from_all)},
      {"suspects", report.suspects}};
  return answer.dump(2) + "\n";
}

}  // namespace frazil
