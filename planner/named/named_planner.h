#pragma once
// clang-format off
// Planners of other systems, by name. Each decides as its own header says. Here it gets a model, a
// cluster, a mask and a batch, and its answer becomes a plan that the simulator can judge.
//   pipe-bd            hybrid distribution, as its code searches it       planner/partition/pipe_bd.h
//   pipe-bd-memory     pipe-bd's search within the devices' memory        planner/partition/pipe_bd.h
//   torchgpipe         nearly equal blocks, gpipe                         block_partition.h
//   pipetransformer    greedy balance and halving by parameters, gpipe    pipe_transformer.h
//   pipedream          stages and replicas for the steady state, 1f1b     pipedream.h
//   dynmo              partition balancer and packing, 1f1b               dynmo.h
//   dynmo-diffusion    diffusion from uniform's cut and packing, 1f1b     dynmo.h
//   uniform            equal numbers of layers, 1f1b                      uniform.h
// This unit chooses what no planner decides: stage s is on device s, there is one pipeline, and
// judge_named_planner tries every micro-batch size on offer. The exceptions are pipe-bd, which
// makes the batch one micro-batch, and pipetransformer, which has a table of its own. All plans are
// synchronous, pipedream's included.
// clang-format on

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/prediction/ranking.h"
#include "planner/search/search.h"
#include "profiles/setting.h"

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

// Tells whether the planner sets its micro-batch size itself, whatever size is asked for.
bool chooses_its_micro_batches(NamedPlanner planner);

std::string_view planner_name(NamedPlanner planner);
// Returns what its author's cost model takes for given, in words.
std::string_view assumptions_of(NamedPlanner planner);
// Finds a planner by its name, in any case; none for an unknown name.
std::optional<NamedPlanner> find_planner(std::string_view name);
std::vector<std::string_view> all_planner_names();
// Returns a line for each planner: its name and whose plans it makes.
std::string list_planners();

// What a planner says of its plan, beside what the simulator says.
struct PlannerRemarks {
  std::optional<Duration> bottleneck;  // pipedream: from one micro-batch to the next, as it reckons
  int left_out = 0;                    // pipedream: layers that its optimizer leaves out
};

struct JudgedPlan {
  Candidate candidate;
  PlannerRemarks remarks;
};

struct BatchOptions {
  int batch_size = 1;
  int micro_batch_size = 1;
};

// Returns the planner's plan. Throws InfeasibleError where the planner has no answer. Requires: a
// mask with one bit per block; sizes of at least 1.
Plan make_named_plan(NamedPlanner planner, Setting setting, const FreezeMask& mask,
                     const BatchOptions& batch);

// Returns the plan that ranks best in the simulator over the micro-batch sizes on offer, feasible
// plans before infeasible ones. Throws InfeasibleError where the planner has no answer for any
// size. It reads only batch_size, micro_batch_sizes, mask and clip of the options.
JudgedPlan judge_named_planner(NamedPlanner planner, Setting setting, const SearchOptions& options);

}  // namespace frazil
