#include "analysis/ablation/predict/mask_course.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/freezing/freeze_json.h"
#include "planner/freezing/run_shape.h"
#include "planner/transitions/cache_residency.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using CourseJson = nlohmann::json;

// Returns "freeze" of the configuration with a policy: the short form, PipeTransformer's schedule
// in three numbers, is policy `alpha` with these (docs/formats.md).
CourseJson expand_freezing(CourseJson freeze) {
  if (freeze.contains("policy") || freeze.contains("decorators")) return freeze;
  CourseJson policy{{"kind", "none"}};
  if (freeze.value("alpha", CourseJson(0)) != CourseJson(0)) policy["kind"] = "alpha";
  for (const char* const key : {"alpha", "start_epoch", "interval_epochs"}) {
    if (policy["kind"] == "alpha" && freeze.contains(key)) policy[key] = freeze[key];
    freeze.erase(key);
  }
  freeze["policy"] = policy;
  return freeze;
}

FreezeConfig read_freezing(const BaseRun& base, int blocks) {
  const CourseJson run = CourseJson::parse(base.text);
  const auto freeze = run.find("freeze");
  if (freeze == run.end() || !freeze->is_object()) return {};
  return parse_freeze_config(parse_json(expand_freezing(*freeze).dump(), base.file.string()),
                             blocks, std::filesystem::absolute(base.file).parent_path());
}

// Sets the steps of each segment, which lasts until the next one or the end.
void end_segments(MaskCourse& course) {
  for (std::size_t k = 0; k < course.segments.size(); ++k) {
    const bool is_last = k + 1 == course.segments.size();
    const Step end = is_last ? course.steps : course.segments[k + 1].step;
    course.segments[k].steps = end - course.segments[k].step;
  }
}

}  // namespace

RunLength length_of(const BaseRun& base, std::int64_t samples) {
  ENSURE(samples >= 1, "an epoch with samples");
  return {samples, (samples + base.batch_size - 1) / base.batch_size};
}

RunLength length_of(const BaseRun& base, const PairResult& result) {
  const Step epoch = std::max<Step>(1, result.steps / base.epochs);
  return {epoch * base.batch_size, epoch};
}

MaskCourse foresee_course(const BaseRun& base, const ModelProfile& profile, const RunLength& length,
                          std::int64_t seed) {
  const RunShape shape = shape_run(profile, base.epochs * length.steps_per_epoch,
                                   length.steps_per_epoch, static_cast<std::uint64_t>(seed));
  MaskCourse course{.segments = {},
                    .steps = shape.steps,
                    .samples = length.samples,
                    .source = MaskCourse::Source::kLength,
                    .file = base.file.string(),
                    .seed = seed};
  const auto masks = foresee_masks(read_freezing(base, shape.blocks), shape);
  if (masks) {
    course.source = MaskCourse::Source::kForeseen;
    for (const TracedMask& each : *masks) course.segments.push_back({each.step, 0, each.mask});
  } else {
    course.segments.push_back({0, 0, FreezeMask::all_active(shape.blocks)});
  }
  end_segments(course);
  return course;
}

MaskCourse record_course(const BaseRun& base, const PairResult& result, const std::string& file) {
  MaskCourse course{.segments = {},
                    .steps = result.steps,
                    .samples = length_of(base, result).samples,
                    .overhead = result.overhead,
                    .source = MaskCourse::Source::kRecorded,
                    .file = file,
                    .seed = result.pair.seed};
  for (const PairPhase& phase : result.phases) {
    const FreezeMask mask = FreezeMask::parse(phase.mask, file, 0);
    if (!course.segments.empty() && course.segments.back().mask == mask) continue;
    course.segments.push_back({phase.first_step, 0, mask});
  }
  end_segments(course);
  return course;
}

}  // namespace frazil
