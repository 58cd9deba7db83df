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

class SeriesReader {
 public:
  explicit SeriesReader(const KinetoOptions& options) : options_(options) {}

  void add(const std::filesystem::path& path) {
    const JoinedTrace trace = join_trace(read_kineto_trace(path, options_.layer_prefix));
    if (!trace.steps.has_ranges) {
      throw InputError(trace.file, 0, "no step",
                       "ranges ProfilerStep#N, which the profiler's schedule and step() make");
    }
    const BackwardMatch backward = match_backward(trace);
    const TraceLayers layers = find_layers(trace, backward, options_.micro_batches);
    check_source(trace.file, layers.source);
    const TraceCosts costs = sum_costs(trace, backward, layers);
    check_time(trace.file, costs.is_device_time);
    for (std::size_t l = 0; l < layers.names.size(); ++l)
      add_layer(layers.names[l], costs.layers[l]);
    add_steps(trace);
    for (const std::string& gpu : trace.gpus) {
      if (std::find(series_.gpus.begin(), series_.gpus.end(), gpu) != series_.gpus.end()) continue;
      series_.gpus.push_back(gpu);
    }
    is_first_ = false;
  }

  StepSeries take() { return std::move(series_); }

 private:
  void check_source(const std::string& file, LayerSource source) {
    if (options_.needs_ranges && source != LayerSource::kRanges) {
      throw InputError(file, 0, "no range in the counted steps",
                       fmt::format("ranges whose names begin with \"{}\"", options_.layer_prefix));
    }
    if (!is_first_ && source != series_.layers_by) {
      throw InputError(file, 0, "layers found in another way", "that of the first trace");
    }
    series_.layers_by = source;
  }

  void check_time(const std::string& file, bool is_device_time) {
    if (!is_first_ && is_device_time != series_.is_device_time) {
      throw InputError(file, 0, is_device_time ? "device work" : "no device work",
                       "the same as in the first trace");
    }
    series_.is_device_time = is_device_time;
  }

  void add_layer(const std::string& name, const std::vector<LayerStep>& steps) {
    const auto [place, is_new] = places_.try_emplace(name, series_.layers.size());
    if (is_new) series_.layers.push_back({name, {}});
    for (const LayerStep& step : steps) {
      if (!step.ran) continue;
      std::int64_t time = step.forward;
      for (const std::int64_t part : {step.input, step.weight, step.both}) {
        add_saturating(time, part);
      }
      series_.layers[place->second].times.push_back(time);
    }
  }

  void add_steps(const JoinedTrace& trace) {
    const std::size_t before = series_.communication.size();
    series_.communication.resize(before + trace.steps.kept.size());
    for (const KinetoSteps::Step& step : trace.steps.kept) {
      series_.steps.push_back(step.end - step.start);
    }
    for (const DeviceWork& work : trace.device) {
      if (!work.is_communication || work.step < 0) continue;
      add_saturating(series_.communication[before + static_cast<std::size_t>(work.step)],
                     work.duration);
    }
  }

  const KinetoOptions& options_;
  bool is_first_ = true;
  std::map<std::string, std::size_t> places_;
  StepSeries series_;
};

}  // namespace

StepSeries read_step_series(const std::vector<std::filesystem::path>& traces,
                            const KinetoOptions& options) {
  ENSURE(!traces.empty() && options.micro_batches >= 1, "at least one trace and micro-batch");
  SeriesReader reader(options);
  for (const std::filesystem::path& trace : traces) reader.add(trace);
  return reader.take();
}

}  // namespace frazil
