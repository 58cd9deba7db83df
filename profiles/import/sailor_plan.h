#pragma once
// Reads a plan of Sailor with the measurements of its run: {"pipeline_list": [{"num_stages",
// "layers_per_stage", "tmp_per_stage", "dp"}], "mbs", "gbs", "real", "red_grads", "max_mem", ...}.
// A replica of a stage is [[[GPU, GPUs, zone], ...], degree of tensor parallelism].

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct SailorPlan {
  std::string name;                          // the file's name without ".json"
  std::vector<std::vector<LayerId>> stages;  // consecutive layers, from 0 on
  int replicas = 1;                          // of every stage
  int degree = 1;                            // tensor-parallel degree
  std::string gpu;
  int micro_batch_size = 1;
  int batch_size = 1;
  std::optional<Duration> iteration;  // "real": measured seconds per iteration
  std::optional<Duration> reduction;  // "red_grads": the iteration's share that reduces gradients
  std::optional<Bytes> peak_memory;   // "max_mem": peak of the GPU with the highest peak

  int layers() const;
  int micro_batches_per_replica() const { return batch_size / (micro_batch_size * replicas); }
  friend bool operator==(const SailorPlan&, const SailorPlan&) = default;
};

// Reads a plan. Throws InputError with file, line and path, also for a plan that one profile cannot
// carry: several pipelines, stages in unequal numbers of replicas, unequal GPUs or degrees, a batch
// that does not divide among replicas and micro-batches.
SailorPlan parse_sailor_plan(std::string_view text, const std::string& file);

// Throws InputError unless the plan's stages hold exactly the layers 0 to `layers` - 1.
void refuse_other_layers(const SailorPlan& plan, int layers, const std::string& file);

// Returns a sentence for each measured value that looks like a copy of another plan's: a reduction
// that takes more than half of its iteration while the median plan's takes less than a tenth, and
// plans with equal time and equal memory.
std::vector<std::string> find_suspect_values(const std::vector<SailorPlan>& plans);

}  // namespace frazil
