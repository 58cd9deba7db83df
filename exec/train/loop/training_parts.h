#pragma once
// TrainingParts are what the loop of a training, its changes of phase and its checkpoints work on
// together: the run and its plans, who decides on freezing, what is recorded and told. They refer
// to each other and live as long as the training.

#include <functional>
#include <optional>

#include "exec/checkpoint/measured_costs.h"
#include "exec/data/dataset.h"
#include "exec/data/sample_loader.h"
#include "exec/run/run.h"
#include "exec/train/cache_control.h"
#include "exec/train/freeze_control.h"
#include "exec/train/loop/run_teller.h"
#include "exec/train/plans/elastic_plan.h"
#include "exec/train/plans/replanner.h"
#include "exec/train/processes/silences.h"
#include "exec/train/trace_recorder.h"
#include "exec/train/train_options.h"
#include "exec/train/train_result.h"
#include "planner/freezing/run_shape.h"

namespace frazil {

struct TrainingParts {
  // Makes the parts of a run of so many steps, and its processes with them. The references must
  // outlive this object. Throws as making the world of the run and its cache does.
  TrainingParts(const TrainOptions& all_options, const Dataset& all_data, Step all_steps,
                const RunTeller::Progress& progress);
  TrainingParts(const TrainingParts&) = delete;
  TrainingParts& operator=(const TrainingParts&) = delete;

  const TrainOptions& options;
  const RunConfig& config;  // of `options`
  const Dataset& data;
  RunPlaces places;
  Step steps_per_epoch;
  Step steps;      // of the whole run
  RunShape shape;  // of the whole run
  RunScores scores;
  RunTeller teller;
  Silences silences;
  Run run;
  CacheControl cache;
  Replanner replanner;
  ElasticPlan plans;
  FreezeControl freezing;
  TraceRecorder recorder;
  TrainResult result;  // so far
  // What devices and layers have been found to take, without a plan; none: what profile and cluster
  // say.
  std::optional<MeasuredCosts> costs = std::nullopt;
};

// Records what has happened to the cache since the last call.
void note_cache(TrainingParts& parts);

}  // namespace frazil
