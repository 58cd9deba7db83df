#include "planner/named/named_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "planner/named/block_partition.h"
#include "planner/named/dynmo.h"
#include "planner/named/pipe_transformer.h"
#include "planner/named/pipedream_plan.h"
#include "planner/named/uniform.h"
#include "planner/partition/layer_loads.h"
#include "planner/partition/pipe_bd.h"
#include "profiles/error.h"
#include "profiles/known_names.h"

namespace frazil {
namespace {

struct PlannerRow {
  NamedPlanner planner;
  std::string_view name;
  std::string_view one_line;  // for people
  std::string_view assumes;
};

constexpr std::array kPlanners = {
    PlannerRow{NamedPlanner::kPipeBd, "pipe-bd",
               "Pipe-BD: stages on several devices, which share the samples",
               "a batch is one micro-batch, shared by samples within a stage; unlimited memory; "
               "every relay goes over the link of the first two devices"},
    PlannerRow{
        NamedPlanner::kPipeBdMemory, "pipe-bd-memory", "Pipe-BD within the memory of the devices",
        "a batch is one micro-batch, shared by samples within a stage; every relay goes over "
        "the link of the first two devices"},
    PlannerRow{NamedPlanner::kTorchgpipe, "torchgpipe",
               "torchgpipe's balance: nearly equal times, gpipe",
               "one pipeline of nearly equal times on equal devices; unlimited memory; messages "
               "for nothing"},
    PlannerRow{NamedPlanner::kPipeTransformer, "pipetransformer",
               "PipeTransformer: more and shorter pipelines as blocks freeze",
               "parameters tell the time of a layer; pipelines within a host, each half as long as "
               "the one before; frozen blocks on the first device"},
    PlannerRow{
        NamedPlanner::kPipeDream, "pipedream",
        "PipeDream: stages on several devices, for a steady flow",
        "a pipeline that never flushes, so that the slowest stage alone counts; equal devices "
        "with unlimited memory"},
    PlannerRow{NamedPlanner::kDynMo, "dynmo",
               "DynMo: the least largest load, packed onto few devices",
               "one pipeline on equal devices, each with the least memory of any; messages at no "
               "cost"},
    PlannerRow{
        NamedPlanner::kDynMoDiffusion, "dynmo-diffusion",
        "DynMo by diffusion: layers go to lighter neighbours one by one",
        "one pipeline on equal devices, moved from equal numbers of layers by single layers; "
        "messages at no cost"},
    PlannerRow{NamedPlanner::kUniform, "uniform",
               "equal numbers of layers, as Megatron-LM cuts by default",
               "all layers take equally long, on one pipeline; unlimited memory; messages at no "
               "cost"},
};

const PlannerRow& row_of(NamedPlanner planner) {
  return *std::find_if(kPlanners.begin(), kPlanners.end(),
                       [&](const PlannerRow& row) { return row.planner == planner; });
}

// The input of one planner.
struct Question {
  Setting setting;
  const FreezeMask& mask;
  const BatchOptions& batch;

  int layers() const { return static_cast<int>(setting.profile().layers.size()); }
  int devices() const { return static_cast<int>(setting.cluster().devices.size()); }
  int stages() const { return std::min(layers(), devices()); }
  std::vector<LayerLoad> loads() const {
    const Activity activity = find_activity(setting.profile(), mask);
    return find_layer_loads(setting.profile(), activity, batch.micro_batch_size);
  }
};

// Makes one pipeline over the first devices. Drops empty stages, whose cut repeats the one before.
Plan make_chain_plan(const Question& question, const std::vector<int>& cuts, ScheduleKind kind) {
  std::vector<LayerId> layers;
  for (const int cut : cuts) {
    const bool is_new = layers.empty() ? cut > 0 : LayerId{cut} > layers.back();
    if (is_new && cut < question.layers()) layers.emplace_back(cut);
  }
  std::vector<DeviceId> devices;
  for (std::size_t s = 0; s <= layers.size(); ++s) devices.emplace_back(s);
  Plan plan;
  plan.model_hash = model_hash(question.setting.profile());
  plan.batch_size = question.batch.batch_size;
  plan.micro_batch_size = question.batch.micro_batch_size;
  plan.mask = question.mask;
  plan.pipelines = {make_pipeline(question.layers(), layers, devices,
                                  {MicroBatchId{0}, MicroBatchId{plan.micro_batches() - 1}})};
  plan.schedule = NamedSchedule{.kind = kind, .in_flight = {}, .chunks = 1};
  return plan;
}

Plan plan_pipe_bd(const Question& question, bool with_memory) {
  const auto& [setting, mask, batch] = question;
  if (batch.batch_size < question.devices()) {
    throw InfeasibleError(
        fmt::format("pipe-bd shares a batch by samples, and {} are too few for {} "
                    "devices",
                    batch.batch_size, question.devices()));
  }
  const HybridCosts costs = with_memory
                                ? measure_hybrid_with_memory(setting, mask, batch.batch_size)
                                : measure_hybrid(setting, mask, batch.batch_size);
  // Beyond this many plans the exhaustive search takes more than about a second; dynamic
  // programming still finds the optimum.
  constexpr std::int64_t kMostVisited = 1'000'000;
  const std::optional<HybridPlan> best =
      count_hybrid_plans(costs.devices, costs.blocks) <= kMostVisited ? search_hybrid_plans(costs)
                                                                      : find_hybrid_plan(costs);
  if (!best) {
    throw InfeasibleError("pipe-bd finds no distribution whose stages fit the devices' memory");
  }
  return make_hybrid_plan(*best, setting.profile(), mask, batch.batch_size);
}

Plan plan_torchgpipe(const Question& question) {
  std::vector<Duration> times;
  for (const LayerLoad& load : question.loads()) times.push_back(load.time());
  return make_chain_plan(question, partition_in_blocks(times, question.stages()),
                         ScheduleKind::kGpipe);
}

// Returns times and memory by layer. Under 1f1b no stage has more micro-batches in flight than
// there are stages.
ChainLoads measure_chain(const Question& question) {
  ChainLoads chain;
  const int micro_batches = divide_up(question.batch.batch_size, question.batch.micro_batch_size);
  const int in_flight = std::min(micro_batches, question.stages());
  for (const LayerLoad& load : question.loads()) {
    chain.time.push_back(load.time());
    chain.memory.push_back(load.state + load.stash * in_flight);
  }
  chain.memory_limit = question.setting.cluster().devices.front().memory_limit;
  for (const Device& device : question.setting.cluster().devices) {
    chain.memory_limit = std::min(chain.memory_limit, device.memory_limit);
  }
  return chain;
}

Plan plan_dynmo(const Question& question, bool by_diffusion) {
  const ChainLoads chain = measure_chain(question);
  std::optional<std::vector<int>> cuts;
  if (by_diffusion) {
    cuts = balance_by_diffusion(chain, cut_uniformly(question.layers(), question.devices()));
  } else {
    cuts = balance_by_partition(chain, question.devices());
  }
  if (cuts) cuts = pack_stages(chain, *cuts);
  if (!cuts) throw InfeasibleError("dynmo finds no cut whose stages fit the devices' memory");
  return make_chain_plan(question, *cuts, ScheduleKind::kOneForwardOneBackward);
}

JudgedPlan judge(NamedPlanner planner, Setting setting, const SearchOptions& options, int size) {
  if (planner == NamedPlanner::kPipeDream) {
    PipeDreamPlan made = make_pipedream_plan(setting, options.mask, options.batch_size, size);
    return {judge_plan(std::move(made.plan), setting, options.clip),
            {made.bottleneck, made.left_out}};
  }
  Plan plan = make_named_plan(planner, setting, options.mask, {options.batch_size, size});
  return {judge_plan(std::move(plan), setting, options.clip), {}};
}

}  // namespace

std::string_view planner_name(NamedPlanner planner) { return row_of(planner).name; }

std::string_view assumptions_of(NamedPlanner planner) { return row_of(planner).assumes; }

std::optional<NamedPlanner> find_planner(std::string_view name) {
  const auto row = std::find_if(kPlanners.begin(), kPlanners.end(), [&](const PlannerRow& each) {
    return is_same_name(each.name, name);
  });
  if (row == kPlanners.end()) return std::nullopt;
  return row->planner;
}

std::vector<std::string_view> all_planner_names() {
  std::vector<std::string_view> names;
  for (const PlannerRow& row : kPlanners) names.push_back(row.name);
  return names;
}

std::string list_planners() {
  std::string lines;
  for (const PlannerRow& row : kPlanners) {
    lines += fmt::format("{:<15}  {}\n", row.name, row.one_line);
  }
  return lines;
}

bool chooses_its_micro_batches(NamedPlanner planner) {
  return planner == NamedPlanner::kPipeBd || planner == NamedPlanner::kPipeBdMemory ||
         planner == NamedPlanner::kPipeTransformer;
}

Plan make_named_plan(NamedPlanner planner, Setting setting, const FreezeMask& mask,
                     const BatchOptions& batch) {
  ENSURE(batch.batch_size >= 1 && batch.micro_batch_size >= 1, "a sample");
  const Question question{setting, mask, batch};
  switch (planner) {
    case NamedPlanner::kPipeBd:
      return plan_pipe_bd(question, /*with_memory=*/false);
    case NamedPlanner::kPipeBdMemory:
      return plan_pipe_bd(question, /*with_memory=*/true);
    case NamedPlanner::kTorchgpipe:
      return plan_torchgpipe(question);
    case NamedPlanner::kPipeTransformer:
      return plan_pipe_transformer(setting, {.batch_size = batch.batch_size, .mask = mask});
    case NamedPlanner::kPipeDream:
      return make_pipedream_plan(setting, mask, batch.batch_size, batch.micro_batch_size).plan;
    case NamedPlanner::kDynMo:
      return plan_dynmo(question, /*by_diffusion=*/false);
    case NamedPlanner::kDynMoDiffusion:
      return plan_dynmo(question, /*by_diffusion=*/true);
    case NamedPlanner::kUniform:
      return make_chain_plan(question, cut_uniformly(question.layers(), question.devices()),
                             ScheduleKind::kOneForwardOneBackward);
  }
  fail_ensure(__FILE__, __LINE__, "an unknown planner");
}

JudgedPlan judge_named_planner(NamedPlanner planner, Setting setting,
                               const SearchOptions& options) {
  ENSURE(!options.micro_batch_sizes.empty(), "a micro-batch size to try");
  std::vector<JudgedPlan> judged;
  std::optional<InfeasibleError> refusal;
  for (const int size : options.micro_batch_sizes) {
    try {
      judged.push_back(judge(planner, setting, options, size));
    } catch (const InfeasibleError& error) {
      refusal = error;
    }
  }
  if (judged.empty()) throw InfeasibleError(*refusal);
  return std::move(
      *std::min_element(judged.begin(), judged.end(), [](const JudgedPlan& a, const JudgedPlan& b) {
        return ranking_key(a.candidate) < ranking_key(b.candidate);
      }));
}

}  // namespace frazil
