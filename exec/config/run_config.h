#pragma once
// The run configuration file: "format": "frazil.run", "version": 1: model, data, optimizer, length
// of the run, batch, freezing. Every key but "format" and "version" has a default shown here:
//   {"format": "frazil.run", "version": 1,
//    "model": {"image": 8, "channels": 1, "patch": 2, "dim": 64, "blocks": 6, "heads": 4,
//              "classes": 10, "dropout": 0},
//    "data": {"kind": "digits", "path": "", "validation_percent": 0},
//    "optimizer": {"kind": "adamw", "learning_rate": 0.002, "weight_decay": 0.2, "beta1": 0.9,
//                  "beta2": 0.999, "epsilon": 1e-8, "cosine": true, "warm_up_steps": 0,
//                  "clip_norm": 0},
//    "epochs": 20, "batch_size": 32, "batch_growth": "none", "micro_batch_size": 8, "seed": 1,
//    "freeze": {"policy": {"kind": "none"}, "decorators": {}}, "reduction": "exact",
//    "message_order": "by-tag", "deadline_seconds": 600,
//    "cache": {"kind": "off"}}
// "freeze" is a freeze configuration (planner/freezing/freeze_json.h); for the schedule alpha alone
// it may be {"alpha": 0.33, "start_epoch": 1, "interval_epochs": 1} (alpha 0: none).
// With "batch_growth": "with-pipelines" each pipeline keeps its share of the batch, as in
// PipeTransformer: with g times the pipelines that the run began with a step takes g batches, and
// counts as g steps of the schedules for learning rate and freezing; such a run learns by its
// plans. Data and optimizer take the keys of their kind alone: "synthetic" takes train_samples,
// test_samples and seed, "random-hierarchy" (exec/data/random_hierarchy.h) these and levels 3,
// symbols 8, synonyms 4, branching 2, for a model with a channel for each symbol; "sgd" takes
// momentum in place of beta1, beta2 and epsilon. With "message_order": "as-sent" messages between
// two devices are received in the order in which they are sent, as over NCCL; plans whose lists
// wait for each other are refused in either order. A wait for a single message that is over the
// deadline ends the run, naming who waits for what. "validation_percent" of the training samples,
// chosen by the run's seed, are not trained on: each epoch ends with an evaluation over them, which
// is what a validation guard reads; a run with one must have some. Nothing is decided by the test
// samples. "augmentation": {"kind": "shift", "pixels": 1, "variants": 0} moves each training image
// by up to so many pixels in both directions, as epoch, seed and sample say; with K variants epoch
// e draws what epoch e mod K has drawn, without (0) each epoch draws anew, and nothing can be
// cached. "cache": {"kind": "on", "memory_bytes": 1073741824, "disk_bytes": 0, "folder": "",
// "precision": "float32", "check": false} keeps what the frozen prefix puts out for each training
// sample, in so much memory and then disk (a file in "folder", relative to the configuration file;
// empty: where the system keeps temporary files), so that it runs once per depth, wherever a plan
// has it in the first stage of every pipeline. In "bfloat16" losses are not those of a run without.
// "check" runs the prefix all the same, and ends the run where what is cached has other bits.
// "admission": "predicted" fills a depth where that pays in the steps to come by the profile and
// the rates of the tiers (exec/train/cache_admission.h), "always" wherever there is room; rates are
// those of planner/transitions/feature_store.h unless "memory_bandwidth_bytes_per_second",
// "memory_latency_ns", "disk_bandwidth_bytes_per_second" and "disk_latency_ns" say otherwise.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "exec/cache/cache_config.h"
#include "exec/data/augmentation.h"
#include "exec/data/data_config.h"
#include "exec/models/vit.h"
#include "exec/state/optimizer.h"
#include "planner/actions/message_order.h"
#include "planner/freezing/freeze_authority.h"
#include "planner/plan/plan.h"
#include "profiles/units.h"

namespace frazil {

class JsonCursor;

enum class BatchGrowth { kNone, kWithPipelines };

struct RunConfig {
  VitConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  int epochs = 20;
  int batch_size = 32;  // of a step, or of as many pipelines as there are first where it grows
  BatchGrowth batch_growth = BatchGrowth::kNone;
  int micro_batch_size = 8;
  std::uint64_t seed = 1;
  FreezeConfig freeze = {};
  ReductionMode reduction = ReductionMode::kExact;
  MessageOrder message_order = MessageOrder::kByTag;
  double deadline_seconds = 600;
  AugmentationConfig augmentation = {};
  CacheConfig cache = {};
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

// A trace to replay is read from the folder of `file`.
// Throws InputError with line and path for whatever cannot be run: a dim that heads do not divide,
// an image that patches do not tile, a micro-batch above the batch, digits for another image, ...
RunConfig parse_run_config(std::string_view text, const std::string& file);
// Round trips; fields of the other kind of data or optimizer are not written. Seeds are at most
// kLargestQuantity, other numbers 1e9.
std::string to_json(const RunConfig& config);
RunConfig read_run_config(const std::filesystem::path& path);  // makes paths absolute

// The value of "freeze"; a trace's path is taken from `folder`, and absolute then. Throws
// InputError.
FreezeConfig parse_freeze(const JsonCursor& value, const VitConfig& model,
                          const std::filesystem::path& folder);
// Blocks of the model that freeze or not: embedding, head and those between.
int freeze_blocks(const VitConfig& model);

// Batches of the run that a step of a plan takes at once: 1 where the batch is fixed.
inline Step batches_of(const Plan& plan, const RunConfig& config) {
  return plan.batch_size / config.batch_size;
}

}  // namespace frazil
