#include "profiles/import/sailor_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "profiles/error.h"
#include "profiles/import/sailor_json.h"
#include "profiles/json.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

int take_number(const JsonCursor& cursor) {
  return static_cast<int>(cursor.integer(1, kLargestSailorNumber));
}

std::vector<std::vector<LayerId>> read_stages(const JsonCursor& list) {
  std::vector<std::vector<LayerId>> stages;
  int next = 0;
  for (const JsonCursor& stage : list.items()) {
    std::vector<LayerId> layers;
    for (const JsonCursor& layer : stage.items()) {
      if (layer.integer(0, kLargestSailorNumber) != next) {
        layer.fail(fmt::format("layer {}", layer.describe()),
                   fmt::format("layer {}, for stages hold consecutive layers", next));
      }
      layers.push_back(LayerId{next++});
    }
    if (layers.empty()) stage.fail("a stage without layers", "at least one");
    stages.push_back(std::move(layers));
  }
  return stages;
}

// The placement that all replicas of all stages must have in common.
struct Placement {
  std::string gpu;
  int degree = 0;
  friend bool operator==(const Placement&, const Placement&) = default;
};

Placement read_placement(const JsonCursor& replica) {
  const JsonItems parts = replica.items();
  if (parts.size() != 2) {
    replica.fail(fmt::format("{} values", parts.size()), "machines and a degree");
  }
  Placement placement{.gpu = "", .degree = take_number(parts[1])};
  for (const JsonCursor& machine : parts[0].items()) {
    const JsonItems fields = machine.items();
    if (fields.size() != 3) {
      machine.fail(fmt::format("{} values", fields.size()), "a GPU, how many, and a zone");
    }
    const std::string& gpu = fields[0].text();
    if (gpu.empty() || (!placement.gpu.empty() && gpu != placement.gpu)) {
      fields[0].fail(fields[0].describe(), "the same kind of GPU throughout a replica");
    }
    placement.gpu = gpu;
    take_number(fields[1]);
    fields[2].text();
  }
  if (placement.gpu.empty()) parts[0].fail("a replica without machines", "at least one");
  return placement;
}

void read_placements(const JsonCursor& list, SailorPlan& plan) {
  std::optional<Placement> common;
  std::optional<std::size_t> replicas;
  const std::vector<JsonCursor> stages = list.items();
  if (stages.size() != plan.stages.size()) {
    list.fail(fmt::format("replicas of {} stages", stages.size()),
              fmt::format("of the {} that have layers", plan.stages.size()));
  }
  for (const JsonCursor& stage : stages) {
    const std::vector<JsonCursor> items = stage.items();
    if (items.empty()) stage.fail("a stage without replicas", "at least one");
    if (replicas && *replicas != items.size()) {
      stage.fail(fmt::format("{} replicas", items.size()),
                 fmt::format("{}, as of the stages before", *replicas));
    }
    replicas = items.size();
    for (const JsonCursor& replica : items) {
      const Placement placement = read_placement(replica);
      if (common && *common != placement) {
        replica.fail(fmt::format("GPU {} with tensor parallelism {}", to_one_line(placement.gpu),
                                 placement.degree),
                     fmt::format("{} with {}, as before: a profile holds one",
                                 to_one_line(common->gpu), common->degree));
      }
      common = placement;
    }
  }
  plan.gpu = common->gpu;
  plan.degree = common->degree;
  plan.replicas = static_cast<int>(*replicas);
}

void read_pipeline(const JsonCursor& cursor, SailorPlan& plan) {
  JsonFields fields(cursor);
  const JsonCursor layers = fields.required("layers_per_stage");
  plan.stages = read_stages(layers);
  if (plan.stages.empty()) layers.fail("no stage", "at least one");
  const JsonCursor count = fields.required("num_stages");
  const auto stages = static_cast<int>(plan.stages.size());
  if (take_number(count) != stages) {
    count.fail(count.describe(), fmt::format("{}, the stages that have layers", stages));
  }
  read_placements(fields.required("tmp_per_stage"), plan);
  const JsonCursor data = fields.required("dp");
  const std::vector<JsonCursor> degrees = data.items();
  if (degrees.size() != plan.stages.size()) {
    data.fail(fmt::format("{} values", degrees.size()), fmt::format("one per stage, {}", stages));
  }
  for (const JsonCursor& degree : degrees) {
    if (take_number(degree) != plan.replicas) {
      degree.fail(degree.describe(), fmt::format("{}, the replicas of the stage", plan.replicas));
    }
  }
  fields.finish();
}

void read_batch(JsonFields& fields, SailorPlan& plan) {
  const JsonCursor batch = fields.required("gbs");
  plan.micro_batch_size = take_number(fields.required("mbs"));
  plan.batch_size = take_number(batch);
  const std::int64_t round = std::int64_t{plan.micro_batch_size} * plan.replicas;
  if (plan.batch_size % round != 0) {
    batch.fail(batch.describe(), fmt::format("a multiple of {}, a micro-batch of {} in each of "
                                             "{} replicas",
                                             round, plan.micro_batch_size, plan.replicas));
  }
}

void read_measurements(JsonFields& fields, SailorPlan& plan) {
  const auto real = fields.optional("real");
  const auto reduction = fields.optional("red_grads");
  const auto memory = fields.optional("max_mem");
  if (real) {
    plan.iteration = take_seconds(*real);
    if (plan.iteration->count() == 0) real->fail(real->describe(), "a measured time above zero");
  }
  if (reduction) plan.reduction = take_seconds(*reduction);
  if (memory) plan.peak_memory = Bytes{memory->integer(0, kLargestQuantity)};
  if (real && reduction && *plan.reduction > *plan.iteration) {
    reduction->fail(reduction->describe(), "at most the iteration that it is a part of");
  }
}

double share_of_reduction(const SailorPlan& plan) {
  return static_cast<double>(plan.reduction->count()) /
         static_cast<double>(plan.iteration->count());
}

std::vector<std::string> find_long_reductions(const std::vector<SailorPlan>& plans) {
  std::vector<const SailorPlan*> measured;
  for (const SailorPlan& plan : plans) {
    if (plan.iteration && plan.reduction) measured.push_back(&plan);
  }
  if (measured.empty()) return {};
  std::vector<double> shares;
  shares.reserve(measured.size());
  for (const SailorPlan* plan : measured) shares.push_back(share_of_reduction(*plan));
  std::nth_element(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2),
                   shares.end());
  if (shares[shares.size() / 2] >= 0.1) return {};
  std::vector<std::string> sentences;
  for (const SailorPlan* plan : measured) {
    if (share_of_reduction(*plan) <= 0.5) continue;
    sentences.push_back(fmt::format("{}: red_grads of {} in an iteration of {}", plan->name,
                                    to_text(*plan->reduction), to_text(*plan->iteration)));
  }
  return sentences;
}

}  // namespace

int SailorPlan::layers() const { return stages.back().back().value + 1; }

SailorPlan parse_sailor_plan(std::string_view text, const std::string& file) {
  JsonFields fields(parse_json(text, file));
  SailorPlan plan;
  plan.name = to_one_line(std::filesystem::path(file).stem().string());
  const JsonCursor list = fields.required("pipeline_list");
  const std::vector<JsonCursor> pipelines = list.items();
  if (pipelines.size() != 1) {
    list.fail(fmt::format("{} pipelines", pipelines.size()), "one, in equal replicas");
  }
  read_pipeline(pipelines.front(), plan);
  read_batch(fields, plan);
  read_measurements(fields, plan);
  if (const auto zone = fields.optional("zone")) zone->text();
  if (const auto nodes = fields.optional("N")) take_number(*nodes);
  fields.finish();
  return plan;
}

void refuse_other_layers(const SailorPlan& plan, int layers, const std::string& file) {
  if (plan.layers() == layers) return;
  throw InputError(file, 0, fmt::format("stages of {} layers", plan.layers()),
                   fmt::format("the {} layers of the profile", layers));
}

std::vector<std::string> find_suspect_values(const std::vector<SailorPlan>& plans) {
  std::vector<std::string> sentences = find_long_reductions(plans);
  for (auto plan = plans.begin(); plan != plans.end(); ++plan) {
    const auto same = std::find_if(plans.begin(), plan, [&](const SailorPlan& before) {
      return plan->iteration && plan->peak_memory && before.iteration == plan->iteration &&
             before.peak_memory == plan->peak_memory;
    });
    if (same == plan) continue;
    sentences.push_back(fmt::format("{}: time and memory of {}", plan->name, same->name));
  }
  return sentences;
}

}  // namespace frazil
