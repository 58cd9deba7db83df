// Windows of steps against a recurrence, on blockwise distillation: stage s has a teacher block,
// whose output goes on to stage s + 1, and a student block, which learns from it alone
// (Pipe-BD; Jang et al. 2023).
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "planner/actions/validate_plan.h"
#include "planner/prediction/ranking.h"
#include "planner/prediction/repeat_steps.h"
#include "planner/prediction/simulate_plan.h"
#include "profiles/error.h"
#include "tests/planner/support/order_cases.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

constexpr Duration kHop = microseconds(3);
constexpr Bytes kAmple{1 << 30};

struct StageTime {
  Duration forward{0};  // teacher and student
  Duration backward{0};
  Duration update{0};
};

struct Distillation {
  std::vector<StageTime> stages;
  int micro_batches = 1;
  Duration overhead{0};  // of each device and step
};

LayerId add_block(const std::string& name, const StageTime& time, bool is_student,
                  ModelProfile& model) {
  Layer layer;
  layer.name = name;
  layer.block = BlockId{model.blocks.size() - 1};
  layer.has_loss = is_student;
  layer.parameters = Bytes{is_student ? 100 : 0};
  CostSample cost;
  cost.micro_batch_size = 1;
  if (is_student) {
    cost.backward_weight_alone = time.backward;
    cost.stash = Bytes{10};
    layer.update = time.update;
  } else {
    cost.forward = cost.forward_frozen = time.forward;
  }
  layer.costs = {cost};
  model.layers.push_back(layer);
  return LayerId{model.layers.size() - 1};
}

struct Case {
  ModelProfile model;
  Cluster cluster;
  Plan plan;
  Setting setting() const { return {model, cluster}; }
};

Case make_case(const Distillation& distillation, int steps_ahead) {
  Case made;
  made.model.model = "distilled";
  made.model.input_bytes_per_sample = Bytes{1};
  std::optional<LayerId> before;
  std::vector<LayerId> cuts;
  std::vector<DeviceId> devices;
  for (std::size_t s = 0; s < distillation.stages.size(); ++s) {
    made.model.blocks.push_back("block" + std::to_string(s));
    const StageTime& time = distillation.stages[s];
    const LayerId teacher = add_block("T" + std::to_string(s), time, false, made.model);
    const LayerId student = add_block("S" + std::to_string(s), time, true, made.model);
    if (before) {
      made.model.edges.push_back({*before, teacher, EdgeKind::kDetached, {Bytes{1}}});
      made.model.edges.push_back({*before, student, EdgeKind::kDetached, {Bytes{1}}});
      cuts.push_back(teacher);
    }
    made.model.edges.push_back({teacher, student, EdgeKind::kDetached, {Bytes{1}}});
    devices.emplace_back(static_cast<int>(s));
    before = teacher;
  }
  std::sort(made.model.edges.begin(), made.model.edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  made.cluster = make_uniform_cluster(static_cast<int>(devices.size()), kAmple, {kHop, {}});
  for (Device& device : made.cluster.devices) device.step_overhead = distillation.overhead;
  made.plan.model_hash = model_hash(made.model);
  made.plan.batch_size = distillation.micro_batches;
  made.plan.mask = FreezeMask::all_active(static_cast<int>(made.model.blocks.size()));
  made.plan.pipelines = {
      make_pipeline(static_cast<int>(made.model.layers.size()), cuts, devices,
                    {MicroBatchId{0}, MicroBatchId{distillation.micro_batches - 1}})};
  made.plan.schedule = NamedSchedule{.kind = ScheduleKind::kGpipe};
  made.plan.steps_ahead = steps_ahead;
  return made;
}

// Goes through the steps, of which each stage begins one when it has ended the step before. Returns
// when the last stage has ended the last.
Duration recur(const Distillation& distillation, int steps) {
  std::vector<Duration> free(distillation.stages.size());
  for (int step = 0; step < steps; ++step) {
    std::vector<Duration> arrived(static_cast<std::size_t>(distillation.micro_batches));
    for (std::size_t s = 0; s < free.size(); ++s) {
      const StageTime& time = distillation.stages[s];
      free[s] += distillation.overhead;
      for (Duration& input : arrived) {
        free[s] = std::max(free[s], input) + time.forward;
        input = free[s] + kHop;
      }
      free[s] += time.backward * distillation.micro_batches + time.update;
    }
  }
  return *std::max_element(free.begin(), free.end());
}

Distillation draw_distillation(Random& random) {
  const auto time = [&](int most) { return microseconds(draw(random, 1, most)); };
  Distillation drawn;
  drawn.stages.resize(static_cast<std::size_t>(draw(random, 1, 4)));
  for (StageTime& stage : drawn.stages) stage = {time(50), time(80), time(9)};
  drawn.micro_batches = draw(random, 1, 3);
  if (draw(random, 0, 1) == 1) drawn.overhead = time(20);
  return drawn;
}

TEST(SimulatedWindow, TakesWhatARecurrenceSays) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Distillation drawn = draw_distillation(random);
    for (const int ahead : {0, 1, 7}) {
      const Case made = make_case(drawn, ahead);
      validate(made.plan, made.setting(), "plan.json");
      const PlanSimulation window = simulate_plan(made.plan, made.setting());
      EXPECT_EQ(window.steps, ahead + 1);
      EXPECT_EQ(window.makespan, recur(drawn, ahead + 1));
      EXPECT_EQ(window.step_time, window.makespan / (ahead + 1));
      EXPECT_EQ(judge_plan(made.plan, made.setting(), false).makespan, window.step_time);
      EXPECT_GE(window.step_time, bound_window(window).time);
    }
  }
}

// Teacher relaying pays the ramp of the pipeline in every step, decoupled updates once a window.
TEST(SimulatedWindow, PaysTheRampOnce) {
  const Distillation relayed{.stages = {{microseconds(10), microseconds(20), microseconds(2)},
                                        {microseconds(10), microseconds(30), microseconds(2)},
                                        {microseconds(10), microseconds(15), microseconds(2)}}};
  const Duration longest = microseconds(42);
  const Duration ramp = microseconds(13);  // to the longest stage, which no stage holds up
  for (const int steps : {1, 4, 100}) {
    const Case made = make_case(relayed, steps - 1);
    EXPECT_EQ(simulate_plan(made.plan, made.setting()).makespan, ramp + steps * longest);
  }
  const Case made = make_case(relayed, 0);
  EXPECT_EQ(find_period(made.plan, made.setting(), {.steps = 20}), longest);
}

TEST(SimulatedWindow, HoldsTheMemoryOfAStepAndNumbersItsSteps) {
  Random random(5);
  const Distillation drawn = draw_distillation(random);
  const Case plain = make_case(drawn, 0);
  const PlanSimulation one = simulate_plan(plain.plan, plain.setting());
  const Case made = make_case(drawn, 3);
  const PlanSimulation window = simulate_plan(made.plan, made.setting());
  ASSERT_EQ(window.memory.size(), one.memory.size());
  for (std::size_t d = 0; d < one.memory.size(); ++d) {
    EXPECT_EQ(window.memory[d].total, one.memory[d].total);
  }
  EXPECT_EQ(steps_of(window.timeline), (std::vector<Step>{0, 1, 2, 3}));
  EXPECT_EQ(windows_of(window.timeline, 2), (std::vector<Step>{0, 2}));
  EXPECT_EQ(window.timeline.spans.size(), 4 * one.timeline.spans.size());
}

TEST(SimulatedWindow, IsOneStepWhereGradientsAreClipped) {
  Random random(6);
  const Distillation drawn = draw_distillation(random);
  const Case made = make_case(drawn, 3);
  const Case plain = make_case(drawn, 0);
  const PlanSimulation clipped = simulate_plan(made.plan, made.setting(), {.clip = true});
  EXPECT_EQ(clipped.steps, 1);
  EXPECT_EQ(clipped.timeline, simulate_plan(plain.plan, plain.setting(), {.clip = true}).timeline);
}

TEST(SimulatedWindow, OfAPlanWithWeightVersionsIsRefused) {
  Random random(7);
  Case made = make_case(draw_distillation(random), 3);
  made.plan.versions = WeightVersions::kStash;
  try {
    validate(made.plan, made.setting(), "plan.json");
    ADD_FAILURE() << "it was taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "3 at $.steps_ahead");
    EXPECT_EQ(error.expected(), "0 in a plan with weight versions");
  }
  EXPECT_THROW((void)count_window(made.plan, made.setting()), InfeasibleError);
}

}  // namespace
}  // namespace frazil
