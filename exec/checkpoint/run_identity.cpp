#include "exec/checkpoint/run_identity.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "exec/checkpoint/run_keys.h"
#include "exec/config/configured_run.h"
#include "exec/devices/kernel_facts.h"
#include "exec/disk/hashes.h"
#include "planner/freezing/freeze_json.h"

namespace frazil {
namespace {

using Keys = std::map<std::string, std::string>;

// Adds the values of a JSON text under flat keys: "optimizer.learning_rate": "0.002", ...
void add_flat(const std::string& text, Keys& keys) {
  const nlohmann::json flat = nlohmann::json::parse(text).flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    keys[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

// Adds what a trace holds, which decides the bits; where it lies does not.
void add_trace(TraceFreeze& trace, Keys& keys) {
  trace.path.clear();
  std::string masks = std::to_string(trace.steps);
  for (const TracedMask& mask : trace.masks) {
    masks += "\n" + std::to_string(mask.step) + " " + mask.mask.text();
  }
  keys["freeze.trace"] =
      std::to_string(trace.masks.size()) + " masks with the hash " + to_hex(hash_text(masks));
  if (trace.rates) keys["freeze.trace.rates"] = to_json(FreezePolicy(*trace.rates));
}

}  // namespace

RunIdentity identify_run(const RunConfig& config, const std::string& model_hash,
                         const Dataset& data, Step steps) {
  Keys keys;
  RunConfig deciding = config;
  if (auto* trace = std::get_if<TraceFreeze>(&deciding.freeze.policy)) add_trace(*trace, keys);
  // What files hold decides, by the hash of the data, and not where they lie.
  for (auto* const paths :
       {&deciding.data.files.train, &deciding.data.files.test, &deciding.data.files.validation}) {
    paths->clear();
  }
  deciding.init_from.clear();
  keys.merge(hash_files(config));
  deciding.cache = {};  // a run whose cache rounds keeps no checkpoints
  add_flat(to_json(deciding), keys);
  for (const char* const key :
       {"format", "version", "model.path", "model.teacher.path", "model.student.path",
        "model.teacher_weights", "data.path", "message_order", "deadline_seconds", "replan"}) {
    keys.erase(key);
  }
  // The two schedules that a boolean named before keep their key, and runs their identity.
  if (const auto schedule = keys.find("optimizer.schedule"); schedule->second != "linear") {
    keys["optimizer.cosine"] = schedule->second == "cosine" ? "true" : "false";
    keys.erase(schedule);
  }
  if (config.precision != Precision::kFp32) {
    keys["precision.instructions"] = narrow_instructions(present_kernels());
  }
  keys["model.hash"] = model_hash;
  keys["data.hash"] = to_hex(data.train.hash());
  if (data.validation.count() > 0) keys["data.validation_hash"] = to_hex(data.validation.hash());
  keys["steps"] = std::to_string(steps);
  return {model_hash, hash_keys(keys), keys};
}

}  // namespace frazil
