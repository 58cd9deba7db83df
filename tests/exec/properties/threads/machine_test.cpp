// This machine is asked for its threads, its numbers, its memory and its link.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "exec/devices/host_facts.h"
#include "exec/devices/numerics.h"
#include "exec/devices/workers.h"
#include "exec/measuring/stash_meter.h"
#include "exec/profile/link_probe.h"
#include "tests/exec/support/small_vit.h"

namespace frazil {
namespace {

TEST(Workers, RunEveryJobOnItsOwnThread) {
  Workers workers(5);
  EXPECT_EQ(workers.devices(), 5);
  std::vector<int> runs(5);
  std::vector<int> threads_inside(5);
  std::vector<std::thread::id> ids(5);
  for (int round = 0; round < 50; ++round) {
    workers.run([&](DeviceId device) {
      ++runs[device.index()];
      threads_inside[device.index()] = at::get_num_threads();
      const std::thread::id previous = ids[device.index()];
      ids[device.index()] = std::this_thread::get_id();
      if (round > 0 && previous != ids[device.index()]) throw std::logic_error("another thread");
    });
  }
  EXPECT_EQ(runs, std::vector<int>(5, 50));
  EXPECT_EQ(threads_inside, std::vector<int>(5, 1));
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(Workers, RethrowTheFirstFailureAndTellItOnce) {
  Workers workers(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> finished{0};
    std::atomic<bool> told{false};
    std::vector<std::string> sentences;
    try {
      workers.run(
          [&](DeviceId device) {
            if (device.value == 2) throw InfeasibleError("device 2 cannot");
            while (!told) std::this_thread::yield();
            ++finished;
            if (device.value == 3) throw PeerLost("told");
          },
          [&](const std::string& sentence) {
            sentences.push_back(sentence);
            told = true;
          });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const InfeasibleError& error) {
      EXPECT_STREQ(error.what(), "device 2 cannot");
    }
    EXPECT_EQ(finished, 3);
    EXPECT_EQ(sentences, std::vector<std::string>{"device 2 cannot"});
  }
}

TEST(Workers, ServeAgainAfterAFailure) {
  Workers workers(2);
  EXPECT_THROW(workers.run([](DeviceId) { throw std::runtime_error("once"); }), std::runtime_error);
  EXPECT_THROW(workers.run([](DeviceId) { throw 5; }), int);
  std::atomic<int> runs{0};
  workers.run([&](DeviceId) { ++runs; });
  EXPECT_EQ(runs, 2);
}

TEST(Numerics, HoldOnThisMachine) {
  EXPECT_EQ(check_numerics(), std::nullopt);
  EXPECT_EQ(at::get_num_threads(), 1);
}

TEST(HostFacts, NameTheMachine) {
  const Provenance facts = host_facts();
  for (const char* key : {"date", "processor", "cores", "system", "torch", "mkl_cbwr"}) {
    ASSERT_TRUE(facts.contains(key)) << key;
    EXPECT_FALSE(facts.at(key).empty()) << key;
  }
  EXPECT_EQ(facts.size(), 6U);
}

Bytes stash_of(LayerId layer, int samples) {
  const ModelSpec model = make_vit(small_config());
  DeviceState state;
  for (int l = 0; l < kSmallLayers; ++l) {
    state[LayerId{l}] = make_initial_state(model, LayerId{l}, 1);
  }
  const Samples micro_batch{{at::ones({samples, 1, 8, 8})}, at::zeros({samples}, at::kLong)};
  return measure_stashes(model, state, micro_batch)[layer.index()];
}

TEST(StashMeter, GrowsInProportionToTheMicroBatch) {
  for (const int layer : {1, 2}) {
    const Bytes two = stash_of(LayerId{layer}, 2);
    EXPECT_EQ(stash_of(LayerId{layer}, 4), two * 2) << layer;
    EXPECT_EQ(stash_of(LayerId{layer}, 8), two * 4) << layer;
    EXPECT_EQ(stash_of(LayerId{layer}, 2), two) << "measured again, layer " << layer;
  }
}

TEST(StashMeter, CountsTheInputAndWhatTheBackwardReads) {
  const Bytes input{2 * 17 * 32 * 4};
  for (int layer = 1; layer < kSmallLayers; ++layer) {
    EXPECT_GE(stash_of(LayerId{layer}, 2), input) << layer;
  }
  // An MLP saves at least its normed input and, four times as wide, GELU's input and output.
  EXPECT_GE(stash_of(LayerId{2}, 2), input * (1 + 1 + 4 + 4));
  EXPECT_LT(stash_of(LayerId{2}, 2), input * 16);
  // Attention saves at least its normed input, queries, keys, values and their mix.
  EXPECT_GE(stash_of(LayerId{1}, 2), input * (1 + 1 + 3 + 1));
}

TEST(LinkProbe, MeasuresTwoDevices) {
  const ComputeDevices cores({}, 2);
  const LinkProbe probe = probe_link(cores, 20);
  EXPECT_GT(probe.link.latency.count(), 0);
  EXPECT_GT(probe.link.bandwidth.count, 0);
  EXPECT_EQ(probe.repetitions, 20);
}

TEST(LinkProbe, LeavesFurtherDevicesOut) {
  const ComputeDevices cores({}, 3);
  EXPECT_GT(probe_link(cores, 5).link.bandwidth.count, 0);
}

TEST(LinkProbe, OfOneDeviceCostsNothing) {
  const ComputeDevices cores({}, 1);
  EXPECT_EQ(probe_link(cores, 5).link, Link{});
}

}  // namespace
}  // namespace frazil
