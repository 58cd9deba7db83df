#include "traces/kineto/step_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiles/error.h"
#include "traces/kineto/kineto_backward.h"
#include "traces/kineto/kineto_costs.h"
#include "traces/kineto/kineto_join.h"

namespace frazil {
namespace {

void refuse_other_source(const KinetoOptions& options, const std::string& file,
                         LayerSource source) {
  if (!options.needs_ranges || source == LayerSource::kRanges) return;
  throw InputError(file, 0, "no range in the counted steps",
                   fmt::format("ranges whose names begin with \"{}\"", options.layer_prefix));
}

std::vector<std::int64_t> times_of(const std::vector<LayerStep>& steps) {
  std::vector<std::int64_t> times;
  for (const LayerStep& step : steps) {
    if (!step.ran) continue;
    std::int64_t time = step.forward;
    for (const std::int64_t part : {step.input, step.weight, step.both}) {
      add_saturating(time, part);
    }
    times.push_back(time);
  }
  return times;
}

// Layers of one name are one.
std::vector<LayerSeries> list_layers(const std::vector<std::string>& names,
                                     const std::vector<std::vector<LayerStep>>& steps) {
  std::vector<LayerSeries> layers;
  std::map<std::string, std::size_t> places;
  for (std::size_t l = 0; l < names.size(); ++l) {
    const auto [place, is_new] = places.try_emplace(names[l], layers.size());
    if (is_new) layers.push_back({names[l], {}});
    const std::vector<std::int64_t> own = times_of(steps[l]);
    std::vector<std::int64_t>& times = layers[place->second].times;
    times.insert(times.end(), own.begin(), own.end());
  }
  return layers;
}

std::vector<std::int64_t> communication_of(const JoinedTrace& trace) {
  std::vector<std::int64_t> times(trace.steps.kept.size());
  for (const DeviceWork& work : trace.device) {
    if (!work.is_communication || work.step < 0) continue;
    add_saturating(times[static_cast<std::size_t>(work.step)], work.duration);
  }
  return times;
}

}  // namespace

StepSeries read_step_series(const std::filesystem::path& path, const KinetoOptions& options) {
  ENSURE(options.micro_batches.value_or(1) >= 1, "at least one micro-batch");
  const JoinedTrace trace = join_trace(read_kineto_trace(path, options.layer_prefix));
  if (!trace.steps.has_ranges) {
    throw InputError(trace.file, 0, "no step",
                     "ranges ProfilerStep#N, which the profiler's schedule and step() make");
  }
  const BackwardMatch backward = match_backward(trace);
  const TraceLayers layers = find_layers(trace, backward, options.micro_batches.value_or(1));
  refuse_other_source(options, trace.file, layers.source);
  const TraceCosts costs = sum_costs(trace, backward, layers);
  StepSeries series;
  series.layers_by = layers.source;
  series.is_device_time = costs.is_device_time;
  series.layers = list_layers(layers.names, costs.layers);
  for (const KinetoSteps::Step& step : trace.steps.kept) {
    series.steps.push_back(step.end - step.start);
  }
  series.communication = communication_of(trace);
  for (const std::string& gpu : trace.gpus) {
    if (std::find(series.gpus.begin(), series.gpus.end(), gpu) == series.gpus.end()) {
      series.gpus.push_back(gpu);
    }
  }
  return series;
}

}  // namespace frazil
