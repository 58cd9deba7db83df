#pragma once
// A plan of Sailor with what was measured when it ran: {"pipeline_list": [{"num_stages",
// "layers_per_stage", "tmp_per_stage", "dp"}], "mbs", "gbs", "real", "red_grads", "max_mem", ...}.
// A replica of a stage is [[[GPU, GPUs, zone], ...], degree of tensor parallelism].

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

struct SailorPlan {
  std::string name;                          // of its file, without ".json"
  std::vector<std::vector<LayerId>> stages;  // consecutive layers, from 0 on
  int replicas = 1;                          // of every stage
  int degree = 1;                            // of tensor parallelism
  std::string gpu;
  int micro_batch_size = 1;
  int batch_size = 1;
  std::optional<Duration> iteration;  // "real": measured seconds per iteration
  std::optional<Duration> reduction;  // "red_grads": of it, reducing gradients
  std::optional<Bytes> peak_memory;   // "max_mem": of the GPU that held most

  int layers() const;
  int micro_batches_per_replica() const { return batch_size / (micro_batch_size * replicas); }
  friend bool operator==(const SailorPlan&, const SailorPlan&) = default;
};

// Throws InputError with file, line and path; also for what one profile cannot carry: several
// pipelines, stages in unequal numbers of replicas, unequal GPUs or degrees, a batch that does not
// divide among replicas and micro-batches.
SailorPlan parse_sailor_plan(std::string_view text, const std::string& file);

// Refuses a plan whose stages do not hold exactly the layers 0 to `layers` - 1.
void refuse_other_layers(const SailorPlan& plan, int layers, const std::string& file);

// A sentence for each measured value that looks like another's copy: reductions that take more
// than half of the iteration while the median plan's take less than a tenth, and plans with the
// same time and memory.
std::vector<std::string> find_suspect_values(const std::vector<SailorPlan>& plans);

}  // namespace frazil
