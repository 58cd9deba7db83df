// Compares where the samples of a micro-batch go with a count sample by sample.

#include "planner/plan/stage_slices.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "planner/actions/message.h"
#include "planner/prediction/step_messages.h"
#include "planner/schedules/make_schedule.h"
#include "tests/planner/support/shared_plans.h"

namespace frazil {
namespace {

using std::chrono::nanoseconds;

// Returns which of `a` devices has sample s of n: the first k with (k + 1) n >= (s + 1) a.
int owner_of(int s, int n, int a) {
  int k = 0;
  while ((k + 1) * n < (s + 1) * a) ++k;
  return k;
}

// Makes two stages of one layer; the second lies on devices from `first` on.
Plan make_two_stages(int a, int b, int first, int micro_batches, int samples) {
  Plan plan = make_sliced_plan({a, b}, micro_batches, samples, {.kind = ScheduleKind::kGpipe});
  std::vector<DeviceId>& devices = plan.pipelines[0].stages[1].devices;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    devices[d] = DeviceId{first + static_cast<int>(d)};
  }
  return plan;
}

std::string name_of(int a, int b, int n) {
  return std::to_string(a) + " to " + std::to_string(b) + " devices, " + std::to_string(n) +
         " samples";
}

TEST(StageSlices, CutAMicroBatchIntoIntervalsThatDifferByOneSampleAtMost) {
  for (int a = 2; a <= 8; ++a) {
    for (int n = a; n <= 40; ++n) {
      SCOPED_TRACE(name_of(a, a, n));
      Stage stage{.layers = {}, .devices = std::vector<DeviceId>(static_cast<std::size_t>(a))};
      stage.axis = DeviceAxis::kSamples;
      std::vector<int> owners;
      for (int k = 0; k < a; ++k) {
        const SampleInterval slice = samples_of(stage, k, n);
        EXPECT_GE(slice.count(), n / a);
        EXPECT_LE(slice.count(), n / a + 1);
        for (int s = slice.first; s < slice.end; ++s) owners.push_back(k);
      }
      ASSERT_EQ(static_cast<int>(owners.size()), n);
      for (int s = 0; s < n; ++s) {
        EXPECT_EQ(owners[static_cast<std::size_t>(s)], owner_of(s, n, a));
      }
    }
  }
}

// Follows what arrives at each device of the second stage, sample by sample, in the order of its
// RECVs. Samples that a device has itself come before the rest of the same slice and are put where
// they belong.
class Relay {
 public:
  Relay(const Plan& plan, int a, int b, int n) : plan_(plan), a_(a), b_(b), n_(n) {}

  void check(int devices, bool expects_all_to_travel) {
    const ModelProfile profile = make_chain(2, nanoseconds(1), nanoseconds(1), nanoseconds(1));
    const Activity activity = find_activity(profile, plan_.mask);
    const Schedule completed =
        complete_schedule(make_schedule(plan_, devices), plan_, profile, activity);
    std::multiset<Message> sent;
    for (const auto& list : completed.devices) {
      for (const Action& action : list) {
        if (is_send(action)) sent.insert(message_of(action));
      }
    }
    std::multiset<Message> received;
    for (std::size_t d = 0; d < completed.devices.size(); ++d) {
      for (const Action& action : completed.devices[d]) {
        if (!is_receive(action)) continue;
        const Message message = message_of(action);
        received.insert(message);
        arrive(DeviceId{d}, message);
      }
    }
    EXPECT_EQ(sent, received);
    for (const bool backward : {false, true}) check_delivery(backward, expects_all_to_travel);
    check_sizes(completed, devices, profile, activity);
  }

 private:
  std::vector<int> samples_in(const Message& message) const {
    const int upper = (message.backward ? message.to_slice : message.from_slice).value_or(0);
    const int lower = (message.backward ? message.from_slice : message.to_slice).value_or(0);
    std::vector<int> samples;
    for (int s = 0; s < n_; ++s) {
      if (owner_of(s, n_, a_) == upper && owner_of(s, n_, b_) == lower) samples.push_back(s);
    }
    return samples;
  }

  void arrive(DeviceId device, const Message& message) {
    const std::vector<int> samples = samples_in(message);
    EXPECT_FALSE(samples.empty()) << "a message without samples";
    auto& all = arrived_[{message.backward, device, message.micro_batch}];
    all.insert(all.end(), samples.begin(), samples.end());
  }

  const std::vector<DeviceId>& devices_of(std::size_t stage) const {
    return plan_.pipelines[0].stages[stage].devices;
  }

  void check_delivery(bool backward, bool expects_all_to_travel) {
    int delivered = 0;
    for (MicroBatchId m{0}; m.value < plan_.micro_batches(); ++m.value) {
      for (std::size_t k = 0; k < devices_of(backward ? 0 : 1).size(); ++k) {
        const DeviceId device = devices_of(backward ? 0 : 1)[k];
        std::vector<int> expected;
        for (int s = 0; s < n_; ++s) {
          const auto upper = static_cast<std::size_t>(owner_of(s, n_, a_));
          const auto lower = static_cast<std::size_t>(owner_of(s, n_, b_));
          if ((backward ? upper : lower) != k) continue;
          if (devices_of(0)[upper] != devices_of(1)[lower]) expected.push_back(s);
        }
        const std::vector<int>& found = arrived_[{backward, device, m}];
        EXPECT_EQ(found, expected) << "device " << device.value;
        delivered += static_cast<int>(found.size());
      }
    }
    if (expects_all_to_travel) {
      EXPECT_EQ(delivered, n_ * plan_.micro_batches());
    }
  }

  void check_sizes(const Schedule& completed, int devices, const ModelProfile& profile,
                   const Activity& activity) const {
    const Cluster cluster =
        make_uniform_cluster(devices, Bytes{1'000'000'000}, {nanoseconds(1), BytesPerSecond{1000}});
    const LoweredStep step = lower(plan_, completed, {profile, cluster}, activity);
    std::size_t transfers = 0;
    for (const StepMessage& message : find_step_messages(step, plan_, profile, activity)) {
      EXPECT_EQ(message.size,
                Bytes{10} * static_cast<std::int64_t>(samples_in(message.message).size()));
      ASSERT_NE(message.send, kNoTask);
      const auto& work = step.graph.works()[step.graph.work_of()[message.send]];
      EXPECT_EQ(std::get<Transfer>(work), (Transfer{message.from, message.to, message.size}));
      ++transfers;
    }
    std::size_t sends = 0;
    for (const Action& action : step.actions) sends += is_send(action) ? 1 : 0;
    EXPECT_EQ(transfers, sends);
  }

  const Plan& plan_;
  int a_;
  int b_;
  int n_;
  std::map<std::tuple<bool, DeviceId, MicroBatchId>, std::vector<int>> arrived_;
};

TEST(StageSlices, DeliverEverySampleOnceToTheRightDeviceInOrderFromAnyGroupToAnyOther) {
  for (int a = 1; a <= 8; ++a) {
    for (int b = 1; b <= 8; ++b) {
      for (const int n : {8, 9, 10, 13, 16, 24, 31}) {
        SCOPED_TRACE(name_of(a, b, n));
        const Plan plan = make_two_stages(a, b, a, 2, n);
        Relay(plan, a, b, n).check(a + b, true);
      }
    }
  }
}

// An intersection needs no message if both of its ends are one device.
TEST(StageSlices, DeliverWhatIsNotThereAlreadyBetweenGroupsThatShareDevices) {
  for (int a = 1; a <= 5; ++a) {
    for (int b = 1; b <= 5; ++b) {
      for (const int shift : {0, 1, 2}) {
        for (const int n : {5, 6, 12, 17}) {
          SCOPED_TRACE(name_of(a, b, n) + ", shifted by " + std::to_string(shift));
          const int devices = std::max(a, shift + b);
          const Plan plan = make_two_stages(a, b, shift, 2, n);
          Relay(plan, a, b, n).check(devices, false);
        }
      }
    }
  }
}

TEST(StageSlices, OfAMicroBatchTooSmallForThemAreFound) {
  Plan plan = make_sliced_plan({3, 1}, 2, 4, {});
  EXPECT_EQ(find_thin_micro_batch(plan, PipelineId{0}, StageId{0}), std::nullopt);
  plan.batch_size = 7;
  EXPECT_EQ(find_thin_micro_batch(plan, PipelineId{0}, StageId{0}), std::nullopt);
  plan.batch_size = 6;
  EXPECT_EQ(find_thin_micro_batch(plan, PipelineId{0}, StageId{0}), MicroBatchId{1});
  EXPECT_EQ(find_thin_micro_batch(plan, PipelineId{0}, StageId{1}), std::nullopt);
  plan.micro_batch_size = 2;
  plan.batch_size = 4;
  EXPECT_EQ(find_thin_micro_batch(plan, PipelineId{0}, StageId{0}), MicroBatchId{0});
}

// A stage on one device has no slices, whatever its axis.
TEST(StageSlices, OfOneDeviceAreNone) {
  const Plan plan = make_sliced_plan({1, 1}, 1, 4, {});
  for (const Stage& stage : plan.pipelines[0].stages) EXPECT_EQ(slices_of(stage), 1);
  EXPECT_EQ(to_text(make_schedule(plan, 2)), "d0: 0F0 0B0\nd1: 1F0 1B0\n");
}

}  // namespace
}  // namespace frazil
