#include "analysis/guard/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "profiles/error.h"

namespace frazil {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

std::string text_of(const Provenance& facts, const std::string& key) {
  const auto fact = facts.find(key);
  return fact == facts.end() ? "nothing" : "\"" + fact->second + "\"";
}

std::vector<std::string> list_layers(const Baseline& baseline) {
  std::vector<std::string> names;
  for (const GuardedValue& value : baseline.values) {
    if (value.kind == GuardedKind::kLayer) names.push_back(value.name);
  }
  return names;
}

}  // namespace

std::string_view name_of(GuardedKind kind) {
  switch (kind) {
    case GuardedKind::kStep:
      return "step";
    case GuardedKind::kLayer:
      return "layer";
    case GuardedKind::kLink:
      return "link";
    case GuardedKind::kPrediction:
      return "prediction";
    case GuardedKind::kHost:
      return "host";
  }
  ENSURE(false, "unknown kind of guarded thing");
}

std::string name_thing(GuardedKind kind, const std::string& name) {
  const std::string word(name_of(kind));
  return name.find(word) == std::string::npos ? word + " " + name : name;
}

GuardedValue sum_up(const GuardedSeries& series) {
  ENSURE(!series.values.empty(), "a series has a value");
  GuardedValue value{series.kind, series.name, median_of(series.values), 0,
                     static_cast<int>(series.values.size())};
  std::vector<double> deviations;
  deviations.reserve(series.values.size());
  for (const double one : series.values) deviations.push_back(std::abs(one - value.median));
  constexpr double kOfNormal = 1.4826;
  if (value.median > 0) value.noise = kOfNormal * median_of(std::move(deviations)) / value.median;
  return value;
}

std::vector<GuardedValue> sum_up(const std::vector<GuardedSeries>& series) {
  std::vector<GuardedValue> values;
  for (const GuardedSeries& one : series) {
    if (one.values.empty()) continue;
    const GuardedValue value = sum_up(one);
    if (value.median > 0) values.push_back(value);
  }
  return values;
}

void refuse_other_question(const Baseline& baseline, const Baseline& today,
                           const std::string& file) {
  Provenance keys = baseline.question;
  keys.insert(today.question.begin(), today.question.end());
  for (const auto& [key, text] : keys) {
    const std::string was = text_of(baseline.question, key);
    const std::string is = text_of(today.question, key);
    if (was != is) {
      throw InputError(file, 0, fmt::format("a baseline of {} {}", key, was),
                       fmt::format("one of {}, which this run has", is));
    }
  }
  const std::vector<std::string> was = list_layers(baseline);
  const std::vector<std::string> is = list_layers(today);
  const auto [first, second] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
  if (first == was.end() && second == is.end()) return;
  const auto told = [](const auto& at, const std::vector<std::string>& names) {
    return at == names.end() ? "no layer" : "layer \"" + *at + "\"";
  };
  throw InputError(file, 0, fmt::format("{} at place {}", told(first, was), first - was.begin()),
                   fmt::format("{}, as this run has", told(second, is)));
}

}  // namespace frazil
