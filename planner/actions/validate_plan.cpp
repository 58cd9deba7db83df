#include "planner/actions/validate_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "planner/actions/schedule_check.h"
#include "planner/plan/activity.h"
#include "planner/plan/plan_topology.h"
#include "planner/plan/stage_slices.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Reports a fault in one form: where in the plan it is, what stands there, what belongs there.
class Checker {
 public:
  Checker(const std::string& file, const LineOf& line_of) : file_(file), line_of_(line_of) {}
  [[noreturn]] void fail(const std::string& path, const std::string& found,
                         const std::string& expected) const {
    throw InputError(file_, line_of_ ? line_of_(path) : 0, fmt::format("{} at {}", found, path),
                     expected);
  }

 private:
  std::string file_;
  LineOf line_of_;
};

// Fails unless the closed ranges [first, last] lie in 0..end-1, ascend and are disjoint. `Range` is
// a LayerRange or MicroBatches.
template <class Range>
void check_ranges(const std::vector<Range>& ranges, int end, const std::string& path,
                  const Checker& checker) {
  int next = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const int first = ranges[i].first.value;
    const int last = ranges[i].last.value;
    if (first < next || first > last || last >= end) {
      checker.fail(fmt::format("{}[{}]", path, i), fmt::format("[{}, {}]", first, last),
                   fmt::format("[first, last] within {} to {}", next, end - 1));
    }
    next = last + 1;
  }
}

void check_batch(const Plan& plan, const Checker& checker) {
  if (plan.batch_size < 1) {
    checker.fail("$.batch_size", fmt::format("{}", plan.batch_size), "at least 1 sample");
  }
  if (plan.micro_batch_size < 1) {
    checker.fail("$.micro_batch_size", fmt::format("{}", plan.micro_batch_size),
                 "at least 1 sample");
  }
  const int micro_batches = plan.micro_batches();
  if (micro_batches > kMostMicroBatches) {
    checker.fail("$.micro_batch_size", fmt::format("{} micro-batches", micro_batches),
                 fmt::format("at most {}", kMostMicroBatches));
  }
}

void check_mask(const Plan& plan, const ModelProfile& profile, const Checker& checker) {
  const int blocks = static_cast<int>(profile.blocks.size());
  if (plan.mask.blocks() != blocks) {
    checker.fail("$.mask", fmt::format("{} bits", plan.mask.blocks()),
                 fmt::format("one bit for each of the model's {} blocks", blocks));
  }
}

void check_stage_devices(const Stage& stage, const std::string& path, int devices,
                         const Checker& checker) {
  if (stage.devices.empty()) {
    checker.fail(path, "no device", "at least one device");
  }
  std::set<DeviceId> seen;
  for (std::size_t i = 0; i < stage.devices.size(); ++i) {
    const DeviceId device = stage.devices[i];
    const auto here = [&] { return fmt::format("{}.devices[{}]", path, i); };
    if (device.value < 0 || device.value >= devices) {
      checker.fail(here(), fmt::format("device {}", device.value),
                   fmt::format("a device from 0 to {}", devices - 1));
    }
    if (!seen.insert(device).second) {
      checker.fail(here(), fmt::format("device {} again", device.value),
                   "each device once per stage");
    }
  }
}

void check_slices(const Plan& plan, PipelineId pipeline, StageId stage, const std::string& path,
                  const Checker& checker) {
  const auto thin = find_thin_micro_batch(plan, pipeline, stage);
  if (!thin) return;
  checker.fail(path + ".axis",
               fmt::format("micro-batch {} of {} samples", thin->value, samples_in(plan, *thin)),
               fmt::format("a sample for each of the stage's {} devices",
                           slices_of(plan.pipelines[pipeline.index()].stages[stage.index()])));
}

// Fails unless every layer lies in exactly one stage, as planner/plan/plan_topology.h requires.
void check_coverage(const Pipeline& pipeline, const std::string& path, int layers,
                    const Checker& checker) {
  std::vector<std::optional<std::size_t>> seen_in(static_cast<std::size_t>(layers));
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    for_each_layer(pipeline.stages[stage], [&](LayerId layer) {
      std::optional<std::size_t>& seen = seen_in[layer.index()];
      if (seen) {
        checker.fail(path, fmt::format("layer {} in stages {} and {}", layer.value, *seen, stage),
                     "every layer in one stage");
      }
      seen = stage;
    });
  }
  const auto missing = std::find(seen_in.begin(), seen_in.end(), std::nullopt);
  if (missing != seen_in.end()) {
    checker.fail(path, fmt::format("layer {} in no stage", missing - seen_in.begin()),
                 "every layer in one stage");
  }
}

// Fails if an edge runs back to an earlier stage. If none does, every stage is convex and the
// stages can run in order.
void check_order(const std::vector<StageId>& stage_of, const std::vector<Edge>& edges,
                 const std::string& path, const Checker& checker) {
  for (const Edge& edge : edges) {
    const int from = stage_of.at(edge.from.index()).value;
    const int to = stage_of.at(edge.to.index()).value;
    if (from > to) {
      checker.fail(path,
                   fmt::format("layer {} of stage {} feeding layer {} of stage {}", edge.from.value,
                               from, edge.to.value, to),
                   "convex stages, each after the stages it reads from");
    }
  }
}

void check_owners(const Plan& plan, const Checker& checker) {
  std::vector<MicroBatches> owned;
  for (const Pipeline& pipeline : plan.pipelines) {
    owned.insert(owned.end(), pipeline.micro_batches.begin(), pipeline.micro_batches.end());
  }
  std::sort(owned.begin(), owned.end());
  int next = 0;
  for (const MicroBatches& interval : owned) {
    if (interval.first.value < next) {
      checker.fail("$.pipelines",
                   fmt::format("micro-batch {} in several pipelines", interval.first.value),
                   "every micro-batch in one pipeline");
    }
    if (interval.first.value > next) {
      checker.fail("$.pipelines", fmt::format("micro-batch {} in no pipeline", next),
                   "every micro-batch in one pipeline");
    }
    next = interval.last.value + 1;
  }
  if (next != plan.micro_batches()) {
    checker.fail("$.pipelines", fmt::format("micro-batch {} in no pipeline", next),
                 fmt::format("all {} micro-batches of the batch", plan.micro_batches()));
  }
}

void check_schedule(const NamedSchedule& schedule, const Checker& checker) {
  if (schedule.in_flight.value_or(1) < 1) {
    checker.fail("$.schedule.in_flight", fmt::format("{}", schedule.in_flight.value_or(1)),
                 "at least 1");
  }
  if (schedule.chunks < 1) {
    checker.fail("$.schedule.chunks", fmt::format("{}", schedule.chunks), "at least 1");
  }
}

void check_steps_ahead(const Plan& plan, const Checker& checker) {
  const std::string found = fmt::format("{}", plan.steps_ahead);
  if (plan.steps_ahead < 0 || plan.steps_ahead > kMostStepsAhead) {
    checker.fail("$.steps_ahead", found, fmt::format("a number from 0 to {}", kMostStepsAhead));
  }
  if (plan.steps_ahead > 0 && plan.versions != WeightVersions::kSync) {
    checker.fail("$.steps_ahead", found, "0 in a plan with weight versions");
  }
}

// Fails if the plan is one for the model as it computes in the other precision.
void refuse_other_precision(const Plan& plan, const ModelProfile& profile, const Checker& checker) {
  ModelProfile other = profile;
  other.precision = profile.precision == Precision::kFp32 ? Precision::kBf16 : Precision::kFp32;
  if (plan.model_hash != model_hash(other)) return;
  checker.fail(
      "$.model_hash",
      fmt::format("a plan by a profile of {} in {}", profile.model, name_of(other.precision)),
      fmt::format("one by a profile in {}", name_of(profile.precision)));
}

}  // namespace

void validate(const Plan& plan, Setting setting, const std::string& file, const LineOf& line_of) {
  const ModelProfile& profile = setting.profile();
  const Cluster& cluster = setting.cluster();
  const Checker checker(file, line_of);
  const int layers = static_cast<int>(profile.layers.size());
  const int devices = static_cast<int>(cluster.devices.size());
  const std::string hash = model_hash(profile);
  if (plan.model_hash != hash) {
    refuse_other_precision(plan, profile, checker);
    checker.fail("$.model_hash", "\"" + plan.model_hash + "\"",
                 fmt::format("\"{}\", the hash of model {}", hash, profile.model));
  }
  check_batch(plan, checker);
  check_steps_ahead(plan, checker);
  check_mask(plan, profile, checker);
  if (plan.pipelines.empty()) {
    checker.fail("$.pipelines", "no pipeline", "at least one");
  }
  for (std::size_t i = 0; i < plan.pipelines.size(); ++i) {
    const Pipeline& pipeline = plan.pipelines[i];
    const std::string path = fmt::format("$.pipelines[{}]", i);
    if (pipeline.stages.empty()) {
      checker.fail(path, "no stage", "at least one stage");
    }
    for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
      const std::string here = fmt::format("{}.stages[{}]", path, stage);
      if (pipeline.stages[stage].layers.empty()) {
        checker.fail(here, "no layers", "at least one range of layers");
      }
      check_ranges(pipeline.stages[stage].layers, layers, here + ".layers", checker);
      check_stage_devices(pipeline.stages[stage], here, devices, checker);
    }
    check_coverage(pipeline, path, layers, checker);
    check_order(find_stages(pipeline, profile.layers.size()), profile.edges, path, checker);
    check_ranges(pipeline.micro_batches, plan.micro_batches(), path + ".micro_batches", checker);
  }
  check_owners(plan, checker);
  for (std::size_t i = 0; i < plan.pipelines.size(); ++i) {
    for (std::size_t stage = 0; stage < plan.pipelines[i].stages.size(); ++stage) {
      const std::string here = fmt::format("$.pipelines[{}].stages[{}]", i, stage);
      check_slices(plan, PipelineId{i}, StageId{stage}, here, checker);
    }
  }
  if (const auto* named = std::get_if<NamedSchedule>(&plan.schedule)) {
    check_schedule(*named, checker);
  }
  if (const auto* given = std::get_if<ExplicitSchedule>(&plan.schedule)) {
    if (given->devices.size() != cluster.devices.size()) {
      checker.fail(
          "$.schedule.actions",
          fmt::format("{} list{}", given->devices.size(), given->devices.size() == 1 ? "" : "s"),
          fmt::format("one list for each of the cluster's {} devices", devices));
    }
    validate_schedule({given->devices}, plan, find_activity(profile, plan.mask), file, line_of);
  }
}

}  // namespace frazil
