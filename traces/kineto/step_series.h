#pragma once
// Reads what each step of a trace took, layer by layer, for a guard that compares days. The profile
// that import makes of traces (kineto_profile.h) has their medians alone.

#include <filesystem>
#include <string>
#include <vector>

#include "traces/kineto/kineto_layers.h"
#include "traces/kineto/kineto_profile.h"

namespace frazil {

struct LayerSeries {
  std::string name;
  std::vector<std::int64_t> times;  // ns of forward and backward in each counted step that ran it
};

struct StepSeries {
  LayerSource layers_by = LayerSource::kRanges;
  bool is_device_time = false;
  std::vector<std::string> gpus;            // names of the devices, each once
  std::vector<LayerSeries> layers;          // in the order in which they first run
  std::vector<std::int64_t> steps;          // ns from ProfilerStep's begin to its end
  std::vector<std::int64_t> communication;  // ns in NCCL's kernels, by step
};

// Reads the trace of one rank. Times are of all micro-batches of a step. Of the options the layers'
// prefix, `needs_ranges` and `micro_batches` count. Throws InputError as import_kineto() does, and
// for a trace without ProfilerStep ranges.
StepSeries read_step_series(const std::filesystem::path& trace, const KinetoOptions& options);

}  // namespace frazil
