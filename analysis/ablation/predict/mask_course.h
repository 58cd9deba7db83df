#pragma once
// The course of the runs of an ablation that a prediction rests on: their masks, each for so many
// steps, and what a transition costs besides moving state. Where the policy reads the step alone,
// the run configuration and the number of samples tell the masks before any run; else a run has to
// record them. How long runs are without masks suffices for arms that never freeze.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/ablation/arm_run.h"
#include "analysis/ablation/pair_result.h"
#include "planner/trajectory/forecast_segments.h"

namespace frazil {

struct MaskCourse {
  enum class Source : std::uint8_t {
    kLength,    // the length alone: all blocks are active, and nothing is said of arms that freeze
    kForeseen,  // from the configuration (planner/transitions/cache_residency.h)
    kRecorded,  // by a run
  };

  std::vector<ForecastSegment> segments;  // neighbours differ
  Step steps = 1;                         // of the run
  std::int64_t samples = 1;               // of an epoch, whose features caches hold
  // Besides moving state: none where the course was not recorded, as `plan --forecast` has it.
  TransitionOverhead overhead = {};
  Source source = Source::kRecorded;
  std::string file;  // that masks were read from
  std::int64_t seed = 1;
};

// How long runs are; arm `shorter` is no such run.
struct RunLength {
  std::int64_t samples = 1;  // of an epoch
  Step steps_per_epoch = 1;
};
// Each epoch ends with a step over what is left of the samples. Requires: samples >= 1.
RunLength length_of(const BaseRun& base, std::int64_t samples);
// Returns the length of a run that has ended, which knows its samples to within a batch: all steps
// are taken to be over whole ones.
RunLength length_of(const BaseRun& base, const PairResult& result);

// Returns the course under a seed, as the configuration lets it be known: kForeseen if the masks
// follow from the step alone, else kLength. That no plan may have room for a mask, which a run then
// declines, is not known. Throws InputError for a policy that cannot be read.
MaskCourse foresee_course(const BaseRun& base, const ModelProfile& profile, const RunLength& length,
                          std::int64_t seed);

// Returns the course of a run. `file`: of the result.
MaskCourse record_course(const BaseRun& base, const PairResult& result, const std::string& file);

}  // namespace frazil
