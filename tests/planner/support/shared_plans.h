#pragma once
// Makes plans whose stages lie on several devices, with models and clusters, and lists what each
// device does.

#include <numeric>
#include <string>
#include <vector>

#include "planner/actions/schedule.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "tests/support/sample_models.h"
#include "traces/timeline.h"

namespace frazil {

inline MicroBatches interval(int first, int last) {
  return {MicroBatchId{first}, MicroBatchId{last}};
}

// Makes stages on `devices[s]` devices each, numbered in order from `first`, with equally many
// layers per stage.
inline Pipeline make_shared_pipeline(const std::vector<int>& devices, int layers_per_stage,
                                     const MicroBatches& micro_batches, int first = 0) {
  std::vector<LayerId> cuts;
  std::vector<DeviceId> fronts;
  for (std::size_t s = 0; s < devices.size(); ++s) {
    const int layer = static_cast<int>(s) * layers_per_stage;
    if (s > 0) cuts.emplace_back(layer);
    fronts.emplace_back(0);
  }
  const int layers = static_cast<int>(devices.size()) * layers_per_stage;
  Pipeline pipeline = make_pipeline(layers, cuts, fronts, micro_batches);
  for (std::size_t s = 0; s < devices.size(); ++s) {
    pipeline.stages[s].devices.clear();
    for (int d = 0; d < devices[s]; ++d) pipeline.stages[s].devices.emplace_back(first++);
  }
  return pipeline;
}

// Makes a plan of one pipeline with micro-batches of one sample, in which everything is active.
inline Plan make_shared_plan(const std::vector<int>& devices, int layers_per_stage,
                             int micro_batches, NamedSchedule schedule) {
  Plan plan;
  plan.batch_size = micro_batches;
  plan.mask = FreezeMask::all_active(static_cast<int>(devices.size()) * layers_per_stage);
  plan.pipelines = {make_shared_pipeline(devices, layers_per_stage,
                                         {MicroBatchId{0}, MicroBatchId{micro_batches - 1}})};
  plan.schedule = schedule;
  return plan;
}

// Makes the same plan with stages that share micro-batches of `samples` samples by samples.
inline Plan make_sliced_plan(const std::vector<int>& devices, int micro_batches, int samples,
                             NamedSchedule schedule) {
  Plan plan = make_shared_plan(devices, 1, micro_batches, schedule);
  plan.reduction = ReductionMode::kFast;
  plan.micro_batch_size = samples;
  plan.batch_size = samples * micro_batches;
  for (Stage& stage : plan.pipelines[0].stages) stage.axis = DeviceAxis::kSamples;
  return plan;
}

inline int count(const std::vector<int>& devices) {
  return std::accumulate(devices.begin(), devices.end(), 0);
}

// Makes a model in which F, I and W of a layer take 10 ns and its update 4 ns.
inline ModelProfile make_shared_model(int layers) {
  ModelProfile profile = make_chain(layers, Duration{10}, Duration{10}, Duration{10});
  for (Layer& layer : profile.layers) layer.update = Duration{4};
  return profile;
}

// Makes a cluster with plenty of memory, where only a hop takes time.
inline Cluster make_shared_cluster(int devices, Duration latency = Duration{1}) {
  return make_uniform_cluster(devices, Bytes{1'000'000'000}, {latency, {}});
}

// Lists what a device runs from when to when, such as "0F0 0-10 0B0 42-52".
inline std::string list_spans(const Timeline& timeline, int device) {
  std::string text;
  for (const Span& span : timeline.spans) {
    if (span.device.value != device) continue;
    text += (text.empty() ? "" : " ") + to_text(span.action) + " " +
            std::to_string(span.start.time_since_epoch().count()) + "-" +
            std::to_string(span.end.time_since_epoch().count());
  }
  return text;
}

}  // namespace frazil
