#pragma once
// clang-format off
// The run configuration file: "format": "frazil.run", "version": 1: model, data, optimizer, length
// of the run, batch, freezing. Every key but "format" and "version" has a default, shown here:
//   {"format": "frazil.run", "version": 1,
//    "model": {"kind": "vit", "image": 8, "channels": 1, "patch": 2, "dim": 64, "blocks": 6,
//              "heads": 4, "classes": 10, "dropout": 0},
//    "init_from": "", "data": {"kind": "digits", "path": "", "validation_percent": 0},
//    "optimizer": {"kind": "adamw", "learning_rate": 0.002, "weight_decay": 0.2, "beta1": 0.9,
//                  "beta2": 0.999, "epsilon": 1e-8, "schedule": "cosine", "warm_up_steps": 0,
//                  "clip_norm": 0, "groups": []},
//    "epochs": 20, "evaluation_epochs": 1, "batch_size": 32, "batch_growth": "none",
//    "micro_batch_size": 8, "seed": 1, "replan": "trajectory", "freeze": {"policy": {"kind": "none"}, "decorators": {}}, "reduction": "exact",
//    "local_statistics": false, "precision": "fp32", "message_order": "by-tag", "deadline_seconds": 60,
//    "augmentation": {"kind": "none"}, "cache": {"kind": "off"}, "drift": {"kind": "off"}}
// - "model", "data" and "optimizer" take the keys of their kind alone; exec/models/choice/ has those
//   of models. "synthetic" takes train_samples, test_samples and seed; "random-hierarchy"
//   (exec/data/random_hierarchy.h) takes these and levels 3, symbols 8, synonyms 4, branching 2, for
//   a model with a channel for each symbol. "sgd" takes momentum in place of beta1, beta2 and
//   epsilon.
// - "init_from" is a safetensors file, relative to the configuration file, that holds the start
//   weights (exec/models/choice/start_weights.h); empty: the seed gives them.
// - "schedule" is "cosine", "linear" or "constant" (exec/state/optimizer.h); "cosine": true or false
//   stands for the first and the last of them.
// - "groups": [{"match": "*.bias", "weight_decay": 0, "learning_rate_scale": 1}] treats parameters
//   by name (exec/state/parameter_groups.h). What a group leaves out is that of the optimizer.
// - "data": {"kind": "tensors", "train": [...], "test": [...], "validation": [...], "normalization":
//   {"mean": [...], "deviation": [...]}} reads safetensors files (exec/data/tensor_samples.h).
// - "evaluation_epochs": 5 evaluates after every fifth epoch, and after the last, in place of each.
// - "validation_percent" of the training samples, chosen by the run's seed, are not trained on:
//   each evaluation takes these samples too, which a validation guard reads; a run with a guard
//   must have some. Nothing is decided by the test samples.
// - "batch_growth": "with-pipelines" lets each pipeline keep its share of the batch, as in
//   PipeTransformer: with g times the pipelines that the run began with, a step takes g batches,
//   and counts as g steps of the schedules for learning rate and freezing. Such a run learns by its
//   plans.
// - "replan": "trajectory" follows a course (exec/train/plans/plan_course.h): the plans with which
//   all steps and transitions to come take the least time, as far as the masks to come are known;
//   "greedy" goes to the fastest plan under each mask that comes, whatever that costs. Weights have
//   the same bits, unless an amortisation gate decides on masks by what a change of plan brings.
// - "freeze" is a freeze configuration (planner/freezing/freeze_json.h); for the schedule alpha
//   alone it may be {"alpha": 0.33, "start_epoch": 1, "interval_epochs": 1} (alpha 0: none), and
//   then "freeze_untrainable" too.
// - "local_statistics": true lets stages slice micro-batches by samples whose layers normalise by
//   statistics of the batch: each slice by its own (exec/models/local_statistics.h). For
//   "reduction": "fast" alone, as slices are; what is learned then depends on the plan.
// - "precision": "bf16" computes the layers under autocast (exec/models/model_precision.h), with
//   weights, gradients of weights, their reduction and the optimizer in fp32. For "reduction":
//   "fast" alone, and with a profile in bf16. One plan still gives one set of bits.
// - "message_order": "as-sent" receives messages between two devices in the order in which they are
//   sent, as over NCCL; plans whose lists wait for each other are refused in either order.
// - "deadline_seconds" limits the wait for a single message: one that is over it ends the run,
//   naming who waits for what. Without it the limit follows from the plan's prediction and the
//   first steps (exec/run/step_deadline.h). At most a year.
// - "augmentation": {"kind": "shift", "pixels": 1, "variants": 0} moves each training image by up
//   to so many pixels in both directions, as epoch, seed and sample say. With K variants epoch e
//   draws what epoch e mod K has drawn; with 0 each epoch draws anew, and nothing can be cached.
//   {"kind": "crop", "padding": 4, "flip": true, "variants": 0} cuts images out of padded ones.
// - "cache": {"kind": "on", "memory_bytes": 1073741824, "disk_bytes": 0, "folder": "", "precision":
//   "float32", "check": false, "admission": "predicted"} keeps the outputs of the frozen prefix for
//   each training sample, so that the prefix runs once per depth, wherever a plan has it in the
//   first stage of every pipeline. They lie in so much memory and then disk (a file in "folder",
//   relative to the configuration file; empty: where the system keeps temporary files). In
//   "bfloat16" losses are not those of a run without a cache. "check" runs the prefix all the same,
//   and ends the run if what is cached has other bits. "admission": "predicted" fills a depth if
//   that pays in the steps to come by the profile and the rates of the tiers
//   (exec/train/cache_admission.h), "always" whenever there is room. The rates are those of
//   planner/transitions/feature_store.h unless "memory_bandwidth_bytes_per_second",
//   "memory_latency_ns", "disk_bandwidth_bytes_per_second" and "disk_latency_ns" say otherwise.
// - "drift": {"kind": "on", "window_steps": 2, "false_alarms": 0.001} watches what devices and layers
//   take against what they took when the plan began (planner/drift/drift_detector.h), and re-plans
//   where that pays (exec/train/drift/drift_control.h). "false_alarms" is the share of runs without
//   drift in which one may be told. Not for a batch that grows; in a run over processes or one that
//   keeps its plan nothing is watched.
// clang-format on

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "exec/cache/cache_config.h"
#include "exec/data/augmentation.h"
#include "exec/data/data_config.h"
#include "exec/models/choice/model_choice.h"
#include "exec/state/optimizer.h"
#include "planner/actions/message_order.h"
#include "planner/freezing/freeze_authority.h"
#include "planner/plan/plan.h"
#include "profiles/precision.h"
#include "profiles/units.h"

namespace frazil {

class JsonCursor;

// Whether a run watches what its devices and layers take.
struct DriftConfig {
  enum class Kind { kOff, kOn };
  Kind kind = Kind::kOff;
  int window_steps = 2;
  double false_alarms = 0.001;

  bool is_on() const { return kind == Kind::kOn; }
  friend bool operator==(const DriftConfig&, const DriftConfig&) = default;
};

enum class BatchGrowth { kNone, kWithPipelines };
enum class Replanning { kTrajectory, kGreedy };

struct RunConfig {
  ModelChoice model = {};
  std::string init_from = {};  // safetensors file of start weights; empty: they are drawn
  DataConfig data;
  OptimizerConfig optimizer;
  int epochs = 20;
  int evaluation_epochs = 1;  // from one evaluation to the next; the last epoch ends with one
  int batch_size = 32;        // samples of a step; if the batch grows, of the first plan's step
  BatchGrowth batch_growth = BatchGrowth::kNone;
  int micro_batch_size = 8;
  std::uint64_t seed = 1;
  Replanning replan = Replanning::kTrajectory;
  FreezeConfig freeze = {};
  ReductionMode reduction = ReductionMode::kExact;
  bool local_statistics = false;  // each slice of a micro-batch normalises by its own
  Precision precision = Precision::kFp32;
  MessageOrder message_order = MessageOrder::kByTag;
  std::optional<double> deadline_seconds = std::nullopt;  // none: as predicted
  AugmentationConfig augmentation = {};
  CacheConfig cache = {};
  DriftConfig drift = {};
  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

// Parses the text. A trace to replay is read from the folder of `file`. Throws InputError with line
// and path for whatever cannot be run: a model that cannot be made, a micro-batch above the batch,
// digits for another image, ...
RunConfig parse_run_config(std::string_view text, const std::string& file);
// Returns the text that parse_run_config reads back as the same configuration. Fields of the other
// kinds of data or optimizer are not written. Seeds are at most kLargestQuantity, other numbers
// 1e9.
std::string to_json(const RunConfig& config);
RunConfig read_run_config(const std::filesystem::path& path);  // makes paths absolute

// Parses the value of "freeze". A trace's path is taken from `folder` and made absolute. Throws
// InputError.
FreezeConfig parse_freeze(const JsonCursor& value, const ModelChoice& model,
                          const std::filesystem::path& folder);

// Returns how many batches of the run a step of the plan takes at once: 1 if the batch is fixed.
inline Step batches_of(const Plan& plan, const RunConfig& config) {
  return plan.batch_size / config.batch_size;
}

}  // namespace frazil
