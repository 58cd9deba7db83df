#pragma once
// clang-format off
// PipeTransformer (He et al. 2021) as a planner. It starts with one pipeline per host that uses all
// devices of the host, and halves the pipeline as layers freeze (AutoPipe); the devices that become
// free hold more pipelines (AutoDP).
//   K  pipeline length: starts as the devices of a host and is halved by compress_length. A
//      pipeline never leaves its host; pipeline r of a host has its devices r K .. r K + K - 1
//   R  number of pipelines: hosts x devices of a host / K
//   M  micro-batches of a pipeline: count_micro_batches(K)
// Frozen blocks are a stage of their own on the first device of each pipeline and run the whole
// batch before the pipeline starts. balance_greedily cuts the other layers, each layer being a
// unit. The schedule is gpipe, the reduction a ring. A stage that the cut leaves empty leaves its
// device idle.
// clang-format on

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/named/pipe_transformer_balance.h"
#include "planner/plan/plan.h"
#include "profiles/model_profile.h"
#include "profiles/setting.h"

namespace frazil {

struct PipeTransformerOptions {
  int batch_size = 1;  // of all pipelines; if the batch grows, that before anything freezes
  // Lets each pipeline keep its batch, as published, so that twice the pipelines have twice the
  // batch.
  bool batch_grows = false;
  FreezeMask mask;  // a frozen prefix
  CompressionRule rule = CompressionRule::kNotLarger;
  // Largest stage at the start, in parameters; none: the largest stage of the unfrozen model on all
  // devices of a host.
  std::optional<std::int64_t> reference = std::nullopt;
  // The size of every micro-batch, in place of the table's number of micro-batches.
  std::optional<int> micro_batch_size = std::nullopt;
  // The most pipelines, equally many on each host: AutoDP takes no more, and devices that are left
  // over are idle. 0: any number.
  int max_pipelines = 0;
};

// Returns PipeTransformer's plan. Throws InfeasibleError where it has none: hosts with unequal
// numbers of devices, a number that is no power of two, a mask that does not freeze a prefix, fewer
// micro-batches than pipelines, more hosts than pipelines.
Plan plan_pipe_transformer(Setting setting, const PipeTransformerOptions& options);

// Every decision of PipeTransformer, made by the caller.
struct PipeTransformerShape {
  int length = 1;              // K
  int pipelines_per_host = 1;  // devices that they do not use are idle
  int batch_size = 1;          // of all pipelines
  int micro_batches = 1;       // of one pipeline; fewer where the samples do not divide
  FreezeMask mask;
  // If given, `micro_batches` is not read, and pipelines have whole micro-batches of this size.
  std::optional<int> micro_batch_size = std::nullopt;
};
// Makes the plan of a shape. Throws InfeasibleError for fewer micro-batches than pipelines, and for
// a mask that does not freeze a prefix. Requires: every host has devices for its pipelines.
Plan make_pipe_transformer_plan(Setting setting, const PipeTransformerShape& shape);

// Returns the number of parameters (of four bytes) of each layer behind the frozen prefix. Throws
// InfeasibleError for a mask that does not freeze a prefix.
std::vector<std::int64_t> find_active_parameters(const ModelProfile& profile,
                                                 const FreezeMask& mask);

}  // namespace frazil
