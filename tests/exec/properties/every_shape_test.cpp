// Shapes are drawn at random from all that up to four devices allow: schedule, number and lengths
// of replicas, cuts, owners of micro-batches, a stage on one device more. With dropout, clipping,
// warm-up and cosine on, each has the bits of one device.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "tests/exec/support/changing_rate.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

constexpr int kMostDevices = 4;
constexpr std::array kSchedules = {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                   ScheduleKind::kEagerOneForwardOneBackward, ScheduleKind::kZbH1};
constexpr std::array kMicroBatchCounts = {5, 6, 8, 12};

struct DrawnShape {
  PlanShape plan;
  int hybrid_pipeline = -1;  // a stage of this pipeline is on the last device too; -1: none
  int hybrid_stage = 0;
  bool adam = false;
};

int replicas_of(const DrawnShape& shape) { return static_cast<int>(shape.plan.cuts.size()); }

std::string name_of(const DrawnShape& shape) {
  std::string name = std::string(schedule_name(shape.plan.schedule)) +
                     (shape.adam ? ", AdamW, " : ", SGD, ") +
                     std::to_string(shape.plan.micro_batches) + " micro-batches";
  for (std::size_t p = 0; p < shape.plan.cuts.size(); ++p) {
    name += "; " + std::to_string(shape.plan.owned[p]) + " cut at";
    for (const int cut : shape.plan.cuts[p]) name += " " + std::to_string(cut);
  }
  if (shape.hybrid_pipeline < 0) return name;
  return name + "; stage " + std::to_string(shape.hybrid_stage) + " of pipeline " +
         std::to_string(shape.hybrid_pipeline) + " on two devices";
}

class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed) {}

  // Draws a shape of two devices at least and four at most.
  DrawnShape draw(ScheduleKind schedule, int micro_batches) {
    DrawnShape shape;
    const bool hybrid = below(2) == 0;
    const int devices = 2 + below(kMostDevices - 1) - (hybrid ? 1 : 0);
    const int replicas = 1 + below(devices);
    shape.plan = {.schedule = schedule, .micro_batches = micro_batches, .cuts = {}, .owned = {}};
    const std::vector<int> lengths = split(devices, replicas);
    for (const int length : lengths) shape.plan.cuts.push_back(draw_cuts(length));
    shape.plan.owned = split(micro_batches, replicas);
    if (hybrid) {
      shape.hybrid_pipeline = below(replicas);
      shape.hybrid_stage = below(lengths[static_cast<std::size_t>(shape.hybrid_pipeline)]);
    }
    shape.adam = below(2) == 0;
    return shape;
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  std::vector<int> split(int whole, int parts) {
    std::vector<int> sizes(static_cast<std::size_t>(parts), 1);
    for (int i = parts; i < whole; ++i) ++sizes[static_cast<std::size_t>(below(parts))];
    return sizes;
  }

  std::vector<int> draw_cuts(int stages) {
    std::set<int> cuts;
    while (static_cast<int>(cuts.size()) < stages - 1) cuts.insert(1 + below(kSmallLayers - 1));
    return {cuts.begin(), cuts.end()};
  }

  std::mt19937 random_;
};

// Takes one step of the warm-up, and one along the cosine that lacks a micro-batch and a sample.
std::uint64_t train(const DrawnShape& shape) {
  OptimizerConfig optimizer{.learning_rate = 1e-2, .clip_norm = 0.5};
  if (!shape.adam) optimizer.kind = OptimizerConfig::Kind::kSgd;
  VitConfig config = small_config();
  config.dropout = 0.1;
  Run run(make_vit(config), optimizer, 7, kMostDevices);
  Plan plan = make_small_plan(run.structure(), shape.plan);
  if (shape.hybrid_pipeline >= 0) {
    plan.pipelines[static_cast<std::size_t>(shape.hybrid_pipeline)]
        .stages[static_cast<std::size_t>(shape.hybrid_stage)]
        .devices.emplace_back(devices_of(shape.plan));
  }
  run.transition_to(plan);
  const int micro_batches = shape.plan.micro_batches;
  run.step(0, changing_rate(optimizer, 0, 4), small_micro_batches(0, micro_batches));
  run.step(2, changing_rate(optimizer, 2, 4), small_micro_batches(2, micro_batches - 1, 1));
  return run.weight_hash();
}

TEST(EveryShape, OfUpToFourDevicesEqualsOneDeviceBitForBit) {
  const unsigned seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Drawing drawing(seed);
  std::map<std::pair<int, bool>, std::uint64_t> one_device;
  std::set<std::string> names;
  std::map<std::string, int> seen;
  for (const ScheduleKind schedule : kSchedules) {
    for (const int micro_batches : kMicroBatchCounts) {
      for (int i = 0; i < 7; ++i) {
        const DrawnShape shape = drawing.draw(schedule, micro_batches);
        SCOPED_TRACE(name_of(shape));
        if (!names.insert(name_of(shape)).second) continue;
        const auto [expected, is_new] = one_device.try_emplace({micro_batches, shape.adam}, 0);
        if (is_new) {
          const PlanShape alone{.micro_batches = micro_batches, .owned = {micro_batches}};
          expected->second = train({.plan = alone, .adam = shape.adam});
        }
        EXPECT_EQ(train(shape), expected->second);
        ++seen[shape.adam ? "AdamW" : "SGD"];
        ++seen["replicas " + std::to_string(replicas_of(shape))];
        if (shape.hybrid_pipeline >= 0) ++seen["hybrid"];
      }
    }
  }
  EXPECT_GE(names.size(), 100U);
  for (const char* what : {"AdamW", "SGD", "hybrid", "replicas 1", "replicas 2", "replicas 3"}) {
    EXPECT_GE(seen[what], 10) << what;
  }
}

}  // namespace
}  // namespace frazil
