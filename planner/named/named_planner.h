#pragma once
// Planners of other systems, by name. Each decides as its header says; here it is given a model, a
// cluster, a mask and a batch, and its answer is made a plan that the simulator can judge.
//   pipe-bd            hybrid distribution, as its code searches it       planner/named/pipe_bd.h
//   pipe-bd-memory     the same, within the devices' memory
//   torchgpipe         nearly equal blocks, gpipe                         block_partition.h
//   pipetransformer    greedy balance and halving by parameters, gpipe    pipe_transformer.h
//   pipedream          stages and replicas for the steady state, 1f1b     pipedream.h
//   dynmo              partition balancer and packing, 1f1b               dynmo.h
//   dynmo-diffusion    diffusion from equal numbers of layers, 1f1b
//   uniform            equal numbers of layers, 1f1b                      uniform.h
// What none of them decides is chosen here: stage s on device s, one pipeline, and the size of a
// micro-batch, for which judge_named_planner tries all that it is offered. pipe-bd has one
// micro-batch, the batch; pipetransformer has its own table. Their plans are synchronous,
// pipedream's too.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/plan/plan.h"
#include "planner/prediction/ranking.h"
#include "planner/search/search.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

enum class NamedPlanner : std::uint8_t {
  kPipeBd,
  kPipeBdMemory,
  kTorchgpipe,
  kPipeTransformer,
  kPipeDream,
  kDynMo,
  kDynMoDiffusion,
  kUniform,
};

// Whatever sizes of micro-batches are asked for.
bool chooses_its_micro_batches(NamedPlanner planner);

std::string_view planner_name(NamedPlanner planner);
std::optional<NamedPlanner> find_planner(std::string_view name);
std::string list_planners();  // "pipe-bd, pipe-bd-memory, ..."

struct BatchOptions {
  int batch_size = 1;
  int micro_batch_size = 1;
};

// Throws InfeasibleError where the planner has no answer. Requires: a bit of the mask per block;
// sizes of at least 1.
Plan make_named_plan(NamedPlanner planner, const ModelProfile& profile, const Cluster& cluster,
                     const FreezeMask& mask, const BatchOptions& batch);

// The plan that the simulator likes best over the micro-batch sizes on offer, feasible before
// infeasible. Throws InfeasibleError where there is none. Uses of the options: batch_size,
// micro_batch_sizes, mask, clip.
Candidate judge_named_planner(NamedPlanner planner, const ModelProfile& profile,
                              const Cluster& cluster, const SearchOptions& options);

}  // namespace frazil
