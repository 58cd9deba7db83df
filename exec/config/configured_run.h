#pragma once
// Turns a run configuration into what the rooms below config/ take, which know no configuration:
// the options of a run and of its cache, what its samples are made by, its model and the structure
// of that.

#include <map>
#include <string>

#include "exec/cache/prefix_cache.h"
#include "exec/config/run_config.h"
#include "exec/data/sample_loader.h"
#include "exec/models/model.h"
#include "exec/run/run.h"
#include "profiles/model_profile.h"

namespace frazil {

RunOptions run_options(const RunConfig& config, const DeviceChoice& devices = {});

LoaderConfig loader_config(const RunConfig& config);

// Returns the options of the configured cache. Throws InputError if the folder of its file is not
// there. Requires: a cache is configured.
PrefixCacheOptions cache_options(const RunConfig& config, bool over_processes);

// Makes the configured model, in the configured precision and with the configured start weights.
// Throws InputError if they cannot be read or are another model's.
ModelSpec make_model(const RunConfig& config);

// Returns the hashes of what the files beside the data hold that decide the bits of a run: of a
// model file "model.file_hash" (of the networks of a distillation "model.teacher.file_hash" and
// "model.student.file_hash"), of a teacher's weights "model.teacher_weights.hash", of start weights
// "init_from.hash". Throws InputError.
std::map<std::string, std::string> hash_files(const RunConfig& config);

// Returns the structure of the configured model, without costs.
ModelProfile structure_of(const RunConfig& config);

}  // namespace frazil
