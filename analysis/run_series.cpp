#include "analysis/run_series.h"

#include <algorithm>
#include <optional>

namespace frazil {
namespace {

constexpr std::size_t kMostPoints = 300;

struct Bin {
  Step from = 0;
  Step to = 0;
  double samples = 0;
  double seconds = 0;
  std::size_t events = 0;
};

double seconds_of(Duration duration) { return static_cast<double>(duration.count()) / 1e9; }

std::optional<double> percent_of(std::optional<double> share) {
  if (!share) return std::nullopt;
  return 100 * *share;
}

std::optional<double> pick(const EvalEvent& eval, EvalValue value) {
  switch (value) {
    case EvalValue::kTrainLoss:
      return eval.train_loss;
    case EvalValue::kLoss:
      return eval.loss;
    case EvalValue::kAccuracyPercent:
      return percent_of(eval.accuracy);
    case EvalValue::kValidationLoss:
      if (eval.validation) return eval.validation->loss;
      break;
    case EvalValue::kValidationAccuracyPercent:
      if (eval.validation) return percent_of(eval.validation->accuracy);
      break;
  }
  return std::nullopt;
}

void add_point(Series& series, double x, std::optional<double> y) {
  if (!y) return;
  series.x.push_back(x);
  series.y.push_back(*y);
}

// Keeps every k-th point and the last one.
void thin_out(Series& series) {
  const std::size_t every = divide_up(series.x.size(), kMostPoints);
  if (every <= 1) return;
  Series kept{.name = series.name, .x = {}, .y = {}, .steps = series.steps};
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (i % every != 0 && i + 1 != series.x.size()) continue;
    kept.x.push_back(series.x[i]);
    kept.y.push_back(series.y[i]);
  }
  series = kept;
}

std::vector<Bin> collect_bins(const FreezeTrace& trace) {
  const auto costs = static_cast<std::size_t>(std::count_if(
      trace.events.begin(), trace.events.end(),
      [](const FreezeEvent& event) { return std::holds_alternative<CostEvent>(event.what); }));
  const std::size_t per_bin = divide_up(costs, kMostPoints);
  std::vector<Bin> bins;
  bool new_phase = true;
  for (const FreezeEvent& event : trace.events) {
    new_phase = new_phase || std::holds_alternative<PlanEvent>(event.what);
    const auto* cost = std::get_if<CostEvent>(&event.what);
    if (cost == nullptr) continue;
    if (new_phase || bins.back().events == per_bin) bins.push_back({event.step, 0, 0, 0, 0});
    new_phase = false;
    Bin& bin = bins.back();
    bin.to = event.step + cost->steps;
    bin.samples += static_cast<double>(cost->samples);
    bin.seconds += seconds_of(cost->measured);
    ++bin.events;
  }
  return bins;
}

}  // namespace

Series throughput_series(const std::string& name, const FreezeTrace& trace) {
  Series series{.name = name, .x = {}, .y = {}, .steps = true};
  const std::vector<Bin> bins = collect_bins(trace);
  for (const Bin& bin : bins) {
    if (bin.seconds <= 0) continue;
    series.x.push_back(static_cast<double>(bin.from));
    series.y.push_back(bin.samples / bin.seconds);
  }
  if (!series.x.empty()) {
    series.x.push_back(static_cast<double>(bins.back().to));
    series.y.push_back(series.y.back());
  }
  return series;
}

Series predicted_series(const RunSummary& run) {
  Series series{.name = run.name, .x = {}, .y = {}, .steps = true};
  Step end = 0;
  for (const PhaseSummary& phase : run.phases) {
    const std::optional<double> rate = phase.predicted_rate();
    if (!rate) continue;
    add_point(series, static_cast<double>(phase.first_step), rate);
    end = phase.first_step + phase.steps;
  }
  if (series.x.empty()) return series;
  const auto last = static_cast<double>(run.phases.front().first_step + run.planned_steps);
  add_point(series, std::max(last, static_cast<double>(end)), series.y.back());
  return series;
}

Series eval_series(const std::string& name, const FreezeTrace& trace, EvalValue value) {
  Series series{.name = name, .x = {}, .y = {}, .steps = false};
  for (const FreezeEvent& event : trace.events) {
    const auto* eval = std::get_if<EvalEvent>(&event.what);
    if (eval == nullptr) continue;
    add_point(series, static_cast<double>(event.step), pick(*eval, value));
  }
  thin_out(series);
  return series;
}

Series eval_over_time(const std::string& name, const FreezeTrace& trace, EvalValue value) {
  Series series{.name = name, .x = {}, .y = {}, .steps = false};
  double seconds = 0;
  for (const FreezeEvent& event : trace.events) {
    if (const auto* cost = std::get_if<CostEvent>(&event.what)) {
      seconds += seconds_of(cost->measured);
    } else if (const auto* part = std::get_if<TransitionEvent>(&event.what)) {
      seconds +=
          seconds_of(part->plan_time) + seconds_of(part->move_time) + seconds_of(part->start_time);
    } else if (const auto* eval = std::get_if<EvalEvent>(&event.what)) {
      add_point(series, seconds, pick(*eval, value));
    }
  }
  thin_out(series);
  return series;
}

Series subtract(const Series& series, const Series& base) {
  Series difference{.name = series.name, .x = {}, .y = {}, .steps = series.steps};
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const auto same = std::find(base.x.begin(), base.x.end(), series.x[i]);
    if (same == base.x.end()) continue;
    const auto at = static_cast<std::size_t>(same - base.x.begin());
    add_point(difference, series.x[i], series.y[i] - base.y[at]);
  }
  return difference;
}

bool freezes_anything(const FreezeTrace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(), [](const FreezeEvent& event) {
    const auto* mask_event = std::get_if<MaskEvent>(&event.what);
    return mask_event != nullptr && mask_event->mask.frozen_count() > 0;
  });
}

}  // namespace frazil
