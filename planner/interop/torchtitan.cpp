#include "planner/interop/torchtitan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "profiles/error.h"
#include "profiles/json.h"
#include "traces/kineto/kineto_layers.h"

namespace frazil {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), is_digit);
}

// The words between the dots of a path; one word of a module begins with no digit unless it is the
// place in a list.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t dot = path.find('.');
    parts.push_back(path.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    path.remove_prefix(dot + 1);
  }
}

// True for "linear_3" and "Linear_3", as import kineto names layers that nobody has named:
// attributes of modules begin with small letters.
bool is_numbered_operation(std::string_view name) {
  const std::size_t line = name.rfind('_');
  if (line == std::string_view::npos || line == 0 || !is_number(name.substr(line + 1)))
    return false;
  const bool is_class = std::isupper(static_cast<unsigned char>(name.front())) != 0;
  return is_class || starts_layer(name.substr(0, line));
}

std::string_view without_mark(std::string_view layer) {
  const std::size_t mark = layer.find_last_of(":/ ");
  return mark == std::string_view::npos ? layer : layer.substr(mark + 1);
}

bool is_loss(const Layer& layer) {
  return layer.parameters.count == 0 && without_mark(layer.name).ends_with("loss");
}

// How stages lie on ranks, in torchtitan's terms: by the name of a schedule whose stages lie so.
std::string_view find_placement(const Pipeline& pipeline, std::size_t ranks) {
  std::vector<DeviceId> by_rank;
  const std::size_t stages = pipeline.stages.size();
  bool in_turn = stages % ranks == 0;
  bool as_v = stages == 2 * ranks;
  for (std::size_t s = 0; s < stages; ++s) {
    const DeviceId device = pipeline.stages[s].devices.front();
    const auto found = std::find(by_rank.begin(), by_rank.end(), device);
    const auto rank = static_cast<std::size_t>(found - by_rank.begin());
    if (found == by_rank.end()) by_rank.push_back(device);
    in_turn = in_turn && rank == s % ranks;
    as_v = as_v && rank == std::min(s, stages - 1 - s);
  }
  if (in_turn) return stages == ranks ? "1F1B" : "Interleaved1F1B";
  if (as_v) return "ZBVZeroBubble";
  throw InfeasibleError(
      "torchtitan puts stages on ranks in turn, or as a V with two on each, and this plan has them "
      "otherwise");
}

std::size_t count_ranks(const Pipeline& pipeline) {
  std::vector<DeviceId> devices;
  for (const Stage& stage : pipeline.stages) {
    if (stage.devices.size() != 1) {
      throw InfeasibleError(
          "torchtitan has each stage on one rank of a pipeline, and this plan "
          "has a stage on several devices");
    }
    devices.push_back(stage.devices.front());
  }
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (devices.size() == 1) {
    throw InfeasibleError("torchtitan has no pipeline on one rank, and this plan has one");
  }
  return devices.size();
}

std::int64_t count_micro_batches(const Pipeline& pipeline) {
  std::int64_t count = 0;
  for (const MicroBatches& range : pipeline.micro_batches) count += range.count();
  return count;
}

void refuse_unequal(const Plan& plan) {
  const Pipeline& first = plan.pipelines.front();
  if (plan.mask != FreezeMask::all_active(plan.mask.blocks())) {
    throw InfeasibleError(
        fmt::format("torchtitan trains every module, and the mask {} of this plan freezes some",
                    plan.mask.text()));
  }
  if (plan.batch_size % plan.micro_batch_size != 0) {
    throw InfeasibleError(
        fmt::format("torchtitan has micro-batches of one size, and a batch of {} ends with a "
                    "shorter one than {}",
                    plan.batch_size, plan.micro_batch_size));
  }
  for (const Pipeline& pipeline : plan.pipelines) {
    bool is_equal = pipeline.stages.size() == first.stages.size() &&
                    count_micro_batches(pipeline) == count_micro_batches(first);
    for (std::size_t s = 0; is_equal && s < first.stages.size(); ++s) {
      is_equal = pipeline.stages[s].layers == first.stages[s].layers;
    }
    if (!is_equal) {
      throw InfeasibleError(
          "torchtitan has equal pipelines, and the pipelines of this plan differ");
    }
  }
}

std::string list_modules(const std::vector<std::vector<std::string>>& stages) {
  std::string text = "[\n";
  for (const std::vector<std::string>& modules : stages) {
    text += "  [";
    for (const std::string& module : modules) {
      text += (&module == &modules.front() ? "" : ", ") + json_string(module);
    }
    text += "],\n";
  }
  return text + "]";
}

}  // namespace

std::string module_of_layer(std::string_view layer) {
  const std::string_view path = without_mark(layer);
  if (is_numbered_operation(path)) return "";
  std::string module;
  for (const std::string_view part : split_path(path)) {
    const bool is_place = is_number(part);
    const bool is_name =
        !part.empty() && !is_digit(part.front()) && std::all_of(part.begin(), part.end(), is_word);
    if (!is_name && !(is_place && !module.empty())) return "";
    module += (module.empty() ? "" : ".") + std::string(part);
    if (is_place) break;
  }
  return module;
}

std::vector<std::vector<std::string>> modules_of_stages(const Pipeline& pipeline,
                                                        const ModelProfile& profile,
                                                        const std::string& file) {
  std::vector<std::vector<std::string>> stages;
  std::map<std::string, std::size_t> stage_of;
  for (const Stage& stage : pipeline.stages) {
    std::vector<std::string>& modules = stages.emplace_back();
    for (const LayerRange& range : stage.layers) {
      for (std::size_t l = range.first.index(); l <= range.last.index(); ++l) {
        const Layer& layer = profile.layers[l];
        if (is_loss(layer)) continue;
        const std::string module = module_of_layer(layer.name);
        if (module.empty()) {
          throw InputError(
              file, 0, fmt::format("layer \"{}\"", layer.name),
              "the path of a module, such as \"layer:layers.3\": record the trace with "
              "ranges named so (docs/tutorial.md)");
        }
        const auto [place, is_new] = stage_of.try_emplace(module, stages.size() - 1);
        if (is_new) modules.push_back(module);
        if (place->second == stages.size() - 1) continue;
        throw InfeasibleError(
            fmt::format("torchtitan cuts between modules, and layer \"{}\" of stage {} lies in "
                        "module {}, which "
                        "begins in stage {}",
                        layer.name, stages.size() - 1, module, place->second));
      }
    }
    if (modules.empty()) {
      throw InfeasibleError(
          fmt::format("torchtitan computes the loss itself, and stage {} of this plan has nothing "
                      "else: import the model with --join-loss, and plan again",
                      stages.size() - 1));
    }
  }
  return stages;
}

std::string to_torchtitan_toml(const Plan& plan, const ModelProfile& profile,
                               const std::filesystem::path& schedule, const std::string& file) {
  refuse_unequal(plan);
  const Pipeline& pipeline = plan.pipelines.front();
  const std::size_t ranks = count_ranks(pipeline);
  const std::string_view placement = find_placement(pipeline, ranks);
  const auto stages = modules_of_stages(pipeline, profile, file);
  return fmt::format(
      "# For torchtitan 0.2: the part of a job configuration that runs a plan of frazil.\n"
      "[training]\n"
      "local_batch_size = {}\n"
      "\n"
      "[parallelism]\n"
      "data_parallel_replicate_degree = {}\n"
      "data_parallel_shard_degree = 1\n"
      "pipeline_parallel_degree = {}\n"
      "# The order of work is that of the file; the name says only how stages lie on ranks.\n"
      "pipeline_parallel_schedule = \"{}\"\n"
      "pipeline_parallel_schedule_csv = {}\n"
      "pipeline_parallel_microbatch_size = {}\n"
      "module_fqns_per_model_part = {}\n",
      count_micro_batches(pipeline) * plan.micro_batch_size, plan.pipelines.size(), ranks,
      placement, json_string(schedule.string()), plan.micro_batch_size, list_modules(stages));
}

}  // namespace frazil
