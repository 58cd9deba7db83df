#include "exec/state/state_memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "exec/devices/workers.h"

namespace frazil {
namespace {

constexpr std::int64_t kPage = 4096;

Tensors of_bytes(std::int64_t bytes) { return {at::randn({bytes / 4})}; }

TEST(StateMemory, HoldsTheSameBitsAlignedAndApart) {
  for (const StateMemory& memory : {StateMemory(), StateMemory::keeping()}) {
    for (const std::int64_t values : {0, 1, 15, 100, (1 << 18) - 21, (1 << 18) + 3, 1 << 20}) {
      SCOPED_TRACE(values);
      const at::Tensor trained = at::randn({1, values}).requires_grad_();
      const Tensors from{at::randn({3, 5}), trained, at::arange(values)};
      const Tensors copies = memory.copy(from);
      ASSERT_EQ(copies.size(), from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        EXPECT_TRUE(at::equal(copies[i], from[i]));
        EXPECT_EQ(copies[i].sizes(), from[i].sizes());
        EXPECT_EQ(copies[i].scalar_type(), from[i].scalar_type());
        EXPECT_FALSE(copies[i].requires_grad());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(copies[i].const_data_ptr()) % 64, 0U);
        EXPECT_TRUE(values == 0 || copies[i].const_data_ptr() != from[i].const_data_ptr());
      }
      const Tensors zeros = memory.zeros(from);
      for (std::size_t i = 0; i < from.size(); ++i) {
        EXPECT_TRUE(at::equal(zeros[i], at::zeros_like(from[i])));
      }
      if (values == 0) continue;
      copies[1].fill_(7);
      EXPECT_FALSE(at::equal(copies[1], trained));
      EXPECT_TRUE(at::equal(copies[0], from[0]) && at::equal(copies[2], from[2]));
    }
  }
}

// One tensor alone keeps the whole block.
TEST(StateMemory, LastsAsLongAsAnyOfItsTensors) {
  const at::Tensor from = at::randn({1 << 19});
  std::optional<StateMemory> memory = StateMemory::keeping();
  at::Tensor last = memory->copy({from, at::zeros({1 << 19}), from}).at(2);
  EXPECT_EQ(memory->usage().held, Bytes{3 * (1 << 21)});
  memory.reset();
  EXPECT_TRUE(at::equal(last, from)) << "whoever has made it may be gone";
}

TEST(StateMemory, GivesWhatWasGivenUpAgain) {
  const StateMemory memory = StateMemory::keeping();
  for (const std::int64_t bytes : {3 * kPage, 1200 * kPage}) {
    SCOPED_TRACE(bytes);
    const Tensors from = of_bytes(bytes);
    std::set<const void*> places;
    for (int round = 0; round < 5; ++round) {
      const Tensors copies = memory.copy(from);
      places.insert(copies[0].const_data_ptr());
      EXPECT_TRUE(at::equal(copies[0], from[0]));
      copies[0].fill_(3);
    }
    EXPECT_EQ(places.size(), 1U);
    const Tensors zeros = memory.zeros(from);
    EXPECT_EQ(zeros[0].const_data_ptr(), *places.begin());
    EXPECT_TRUE(at::equal(zeros[0], at::zeros_like(from[0]))) << "what stood there is gone";
  }
}

TEST(StateMemory, OfOneThatKeepsNothingGoesBack) {
  const StateMemory memory;
  memory.reserve({Bytes{kPage}});
  const Tensors copies = memory.copy(of_bytes(kPage));
  EXPECT_EQ(memory.usage().held, Bytes{});
  EXPECT_EQ(memory.usage().kept, Bytes{});
}

TEST(StateMemory, NeedsABlockOfWholePages) {
  EXPECT_EQ(StateMemory::block_of({}), Bytes{});
  EXPECT_EQ(StateMemory::block_of({at::zeros({0})}), Bytes{});
  EXPECT_EQ(StateMemory::block_of({at::zeros({1}), at::zeros({15})}), Bytes{kPage});
  EXPECT_EQ(StateMemory::block_of({at::zeros({1024}), at::zeros({1})}), Bytes{2 * kPage});
}

// Copies come and go at random: held and kept together never exceed the most that was held.
TEST(StateMemory, NeverHasMoreThanWasHeldAtOnce) {
  const unsigned seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const StateMemory memory = StateMemory::keeping();
  std::vector<Tensors> live;
  Bytes held;
  Bytes most;
  int kept = 0;
  for (int i = 0; i < 2000; ++i) {
    if (!live.empty() && random() % 2 == 0) {
      const std::size_t one = random() % live.size();
      live[one] = live.back();
      live.pop_back();
    } else {
      live.push_back(memory.copy(of_bytes(kPage * static_cast<std::int64_t>(1 + random() % 40))));
    }
    held = memory.usage().held;
    most = std::max(most, held);
    ASSERT_LE((held + memory.usage().kept).count, most.count);
    Bytes needed;
    for (const Tensors& each : live) needed += StateMemory::block_of(each);
    ASSERT_GE(held.count, needed.count);
    ASSERT_LE(held.count, needed.count + needed.count / 8);
    kept += memory.usage().kept.count > 0 ? 1 : 0;
  }
  EXPECT_GT(kept, 1000);
}

TEST(StateMemory, ReservesWhatIsNotThereAndNoMore) {
  const StateMemory memory = StateMemory::keeping();
  std::optional<Tensors> first = memory.copy(of_bytes(6 * kPage));
  const Tensors second = memory.copy(of_bytes(kPage));
  const void* const place = first->at(0).const_data_ptr();
  first.reset();
  memory.reserve({Bytes{6 * kPage}, Bytes{6 * kPage}, Bytes{2 * kPage}});
  EXPECT_EQ(memory.usage().held, Bytes{kPage});
  EXPECT_EQ(memory.usage().kept, Bytes{14 * kPage});
  const Tensors one = memory.copy(of_bytes(6 * kPage));
  const Tensors other = memory.copy(of_bytes(6 * kPage));
  EXPECT_TRUE(one[0].const_data_ptr() == place || other[0].const_data_ptr() == place);
  EXPECT_EQ(memory.usage().kept, Bytes{2 * kPage});
  // Memory that nobody has taken makes room for what is reserved next.
  memory.reserve({Bytes{9 * kPage}});
  EXPECT_EQ((memory.usage().held + memory.usage().kept).count, 22 * kPage);
  memory.reserve({Bytes{9 * kPage}});
  EXPECT_EQ((memory.usage().held + memory.usage().kept).count, 22 * kPage);
}

TEST(StateMemory, MayBeAskedByAllDevicesAtOnce) {
  constexpr int kDevices = 4;
  const StateMemory memory = StateMemory::keeping();
  Workers workers(kDevices);
  for (int round = 0; round < 20; ++round) {
    workers.run([&](DeviceId device) {
      std::mt19937 random(static_cast<unsigned>(device.value + 10 * round));
      std::vector<std::pair<Tensors, Tensors>> pairs;
      for (int i = 0; i < 10; ++i) {
        const Tensors from = of_bytes(kPage * static_cast<std::int64_t>(1 + random() % 8));
        pairs.emplace_back(from, memory.copy(from));
        if (random() % 3 == 0) memory.reserve({Bytes{3 * kPage}});
      }
      for (const auto& [from, copies] : pairs) ASSERT_TRUE(at::equal(from[0], copies[0]));
    });
  }
  EXPECT_EQ(memory.usage().held, Bytes{});
}

}  // namespace
}  // namespace frazil
