#pragma once
// Writes a plan as the part of a job configuration of torchtitan (0.2, TOML) that asks for it:
// which modules each stage holds ("module_fqns_per_model_part"), the degrees, the micro-batches,
// and the file of the schedule, which torchtitan reads with PyTorch's _load_csv (compute only,
// planner/interop/pytorch_csv.h).
//
// Layers are named after modules if the trace was recorded with ranges such as "layer:layers.3".
// torchtitan cuts between the children of a model and between the elements of their lists, so that
// "layers.3.attention" stands for "layers.3", and no stage may begin inside that.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"
#include "profiles/model_profile.h"

namespace frazil {

// Returns the module that a layer belongs to: its name behind the last of ':', '/' and ' ', up to
// and with the first part that is a number. "layer:layers.3.attention" is "layers.3". Returns "" if
// the layer is named after an operation ("linear_3", "Linear_3") or is no path of a module.
std::string module_of_layer(std::string_view layer);

// Returns the modules of each stage, in the order of the layers, each once. The loss is no module:
// a layer without parameters whose name ends with "loss" is left out. Throws InputError{file} for a
// layer that is not named after a module, and InfeasibleError if two stages share a module.
std::vector<std::vector<std::string>> modules_of_stages(const Pipeline& pipeline,
                                                        const ModelProfile& profile,
                                                        const std::string& file);

// Returns the text of the configuration, in which `schedule` is the file of the schedule. `file`
// names the profile in complaints. Throws InfeasibleError naming what torchtitan does not have:
// pipelines that differ or hold other numbers of micro-batches, a short last micro-batch, stages
// that lie neither in turn nor as a V on the ranks, a pipeline on one rank.
std::string to_torchtitan_toml(const Plan& plan, const ModelProfile& profile,
                               const std::filesystem::path& schedule, const std::string& file);

}  // namespace frazil
