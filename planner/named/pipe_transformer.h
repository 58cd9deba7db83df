#pragma once
// PipeTransformer (He et al. 2021) as a planner: one pipeline per host that is as long as the host
// has devices, halved as layers freeze (AutoPipe); what becomes free takes more pipelines (AutoDP).
//   K  begins as the devices of a host and is halved by compress_length; a pipeline never leaves
//      its host, and pipeline r of a host has its devices r K .. r K + K - 1
//   R  hosts x devices of a host / K
//   M  count_micro_batches(K)
// Frozen blocks are a stage of their own on the first device of each pipeline and run the whole
// batch before the pipeline starts; the rest is cut by balance_greedily, layers as units. The
// schedule is gpipe, the reduction a ring. A stage that the cut leaves empty leaves its device
// idle.

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/named/pipe_transformer_balance.h"
#include "planner/plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

struct PipeTransformerOptions {
  int batch_size = 1;  // of all pipelines; before anything freezes if the batch grows
  // As published each pipeline keeps its batch, so that twice the pipelines have twice the batch.
  bool batch_grows = false;
  FreezeMask mask;  // a frozen prefix
  CompressionRule rule = CompressionRule::kNotLarger;
  // The largest stage at the start, in parameters; none: that of the whole model.
  std::optional<std::int64_t> reference = std::nullopt;
};

// Throws InfeasibleError where PipeTransformer has no answer: hosts that differ or whose number of
// devices is no power of two, a mask that freezes no prefix, fewer samples than pipelines.
Plan plan_pipe_transformer(const ModelProfile& profile, const Cluster& cluster,
                           const PipeTransformerOptions& options);

// The same with everything decided.
struct PipeTransformerShape {
  int length = 1;              // K
  int pipelines_per_host = 1;  // the other devices idle
  int batch_size = 1;          // of all pipelines
  int micro_batches = 1;       // of one pipeline; fewer where the samples do not divide
  FreezeMask mask;
};
Plan make_pipe_transformer_plan(const ModelProfile& profile, const Cluster& cluster,
                                const PipeTransformerShape& shape);

// Parameters (of four bytes) of the layers behind the frozen prefix. Throws InfeasibleError on
// another mask.
std::vector<std::int64_t> find_active_parameters(const ModelProfile& profile,
                                                 const FreezeMask& mask);

}  // namespace frazil
