// Tests devices that the best plan leaves idle: they are named, for a reason that trying every plan
// confirms; and more devices never make the best plan slower.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "planner/search/explain_plan.h"
#include "planner/search/search.h"
#include "profiles/import/pipedream_graph.h"
#include "profiles/quantity_text.h"
#include "profiles/text_file.h"
#include "tests/planner/support/search_cases.h"
#include "tests/support/public_data.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;

std::set<DeviceId> used_devices(const Plan& plan) {
  std::set<DeviceId> used;
  for (const Pipeline& pipeline : plan.pipelines) {
    for (const Stage& stage : pipeline.stages) {
      used.insert(stage.devices.begin(), stage.devices.end());
    }
  }
  return used;
}

void expect_the_others_idle(const IdleDevices& idle, const Plan& plan, const Cluster& cluster) {
  const std::set<DeviceId> used = used_devices(plan);
  std::vector<DeviceId> others;
  for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
    if (!used.contains(DeviceId{d})) others.emplace_back(d);
  }
  EXPECT_EQ(idle.devices, others);
  EXPECT_EQ(idle.reason.empty(), others.empty());
}

// All the plans on more than `used` devices.
struct OnMore {
  std::optional<Duration> best;  // of those that fit
  bool too_large = false;
};

OnMore look_at_larger(const Ranking& all, std::size_t used) {
  OnMore larger;
  for (const Candidate& candidate : all.candidates) {
    if (used_devices(candidate.plan).size() <= used) continue;
    if (candidate.infeasible) {
      larger.too_large |= candidate.infeasible->needed > candidate.infeasible->available;
    } else {
      larger.best = std::min(larger.best.value_or(Duration::max()), candidate.makespan);
    }
  }
  return larger;
}

// Returns the lowest bound of what a search left out on more than `used` devices.
Duration least_bound(const Ranking& ranking, std::size_t used) {
  Duration least = Duration::max();
  for (const RejectedShapes& shapes : ranking.rejected) {
    const int devices = shapes.group_devices * shapes.groups + shapes.longer;
    if (shapes.rejection.why != Rejection::Why::kBound || devices <= static_cast<int>(used))
      continue;
    least = std::min(least, shapes.rejection.time);
  }
  return least;
}

TEST(IdleDevices, HaveAReasonThatTryingAllPlansConfirms) {
  const std::string no_faster = "plans on more devices are no faster: the best takes ";
  std::map<std::string, int> confirmed;
  for (std::uint64_t seed = 5000; seed < 5400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SearchQuestion question =
        seed % 2 == 0 ? draw_search_question(seed) : draw_tight_question(seed);
    question.options.keep = 2;
    const Ranking found = search_plans({question.profile, question.cluster}, question.options);
    if (found.best() == nullptr) continue;
    const IdleDevices idle =
        explain_plan(found, {question.profile, question.cluster}, question.options).idle;
    expect_the_others_idle(idle, found.best()->plan, question.cluster);
    if (idle.devices.empty()) continue;
    question.options.keep = 0;
    const OnMore larger =
        look_at_larger(search_plans({question.profile, question.cluster}, question.options),
                       used_devices(found.best()->plan).size());
    const bool is_bounded = idle.reason.starts_with(no_faster + "at least ");
    if (!larger.best && !is_bounded) {
      EXPECT_EQ(idle.reason, larger.too_large
                                 ? "plans on more devices do not fit into memory"
                                 : "there is no plan on more devices: too few layers and "
                                   "micro-batches");
      ++confirmed[larger.too_large ? "memory" : "none"];
      continue;
    }
    if (is_bounded) {
      EXPECT_LE(least_bound(found, used_devices(found.best()->plan).size()),
                larger.best.value_or(Duration::max()));
      ++confirmed["bound"];
    } else {
      EXPECT_EQ(idle.reason, no_faster + to_text(*larger.best));
      ++confirmed["slower"];
    }
    EXPECT_GE(larger.best.value_or(Duration::max()), found.best()->makespan);
  }
  for (const char* const what : {"slower", "bound", "memory"})
    EXPECT_GT(confirmed[what], 0) << what;
}

// Up to 6 devices each count is planned for, then 8, 16, 32 and 64; with FRAZIL_ALL_DEVICES
// (./test.sh --soak) each count up to 64.
class PublishedModel : public testing::TestWithParam<const char*> {};

TEST_P(PublishedModel, IsNeverWorseWithMoreDevicesAndSaysWhichIdle) {
  const std::string file = std::string("pipedream/") + GetParam() + ".graph.txt";
  SKIP_WITHOUT_PUBLIC_DATA(file);
  const ModelProfile profile =
      parse_pipedream_graph(read_text_file(public_data(file)), file, {.micro_batch_size = 64})
          .profile;
  SearchOptions options;
  options.batch_size = 1024;
  options.micro_batch_sizes = {64};
  options.schedules = {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZbH1};
  options.mask = FreezeMask::all_active(static_cast<int>(profile.blocks.size()));
  options.joint = true;
  const bool all = std::getenv("FRAZIL_ALL_DEVICES") != nullptr;
  Duration before = Duration::max();
  int idling = 0;
  for (int devices = 1; devices <= 64; ++devices) {
    if (!all && devices > 6 && !std::has_single_bit(static_cast<unsigned>(devices))) continue;
    SCOPED_TRACE(std::to_string(devices) + " devices");
    const Cluster cluster = make_uniform_cluster(devices, Bytes{std::int64_t{1} << 36},
                                                 {microseconds{10}, BytesPerSecond{1'250'000'000}});
    const Ranking ranking = search_plans({profile, cluster}, options);
    ASSERT_NE(ranking.best(), nullptr);
    EXPECT_FALSE(ranking.left.has_value()) << "the best is proven";
    ASSERT_LE(ranking.best()->makespan, before);
    before = ranking.best()->makespan;
    const IdleDevices idle = explain_plan(ranking, {profile, cluster}, options).idle;
    expect_the_others_idle(idle, ranking.best()->plan, cluster);
    idling += idle.devices.empty() ? 0 : 1;
  }
  EXPECT_GT(idling, 0);
}

INSTANTIATE_TEST_SUITE_P(, PublishedModel, testing::Values("vgg16", "alexnet", "resnet50", "gnmt"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace frazil
