// Micro-batches are read before they are asked for.

#include "exec/cache/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

namespace frazil {
namespace {

using Ids = ReadAhead::SampleIds;

// A reader that notes what it reads, and gives the first sample as the depth.
struct Reader {
  std::mutex mutex;
  std::vector<Ids> read;
  std::promise<void> gate;  // opened before anything is read
  std::shared_future<void> opened = gate.get_future().share();

  ReadAhead::Read function() {
    return [this](const Ids& samples) {
      opened.wait();
      const std::lock_guard<std::mutex> lock(mutex);
      read.push_back(samples);
      if (samples.front() < 0) throw std::runtime_error("nothing below 0");
      return std::vector<PrefixRows>{{.depth = static_cast<int>(samples.front())}};
    };
  }
};

TEST(ReadAhead, GivesWhatItHasReadInOrderWhoeverAsksFirst) {
  Reader reader;
  reader.gate.set_value();
  ReadAhead ahead(reader.function());
  ahead.expect({{1, 5}, {2, 6}, {3}});
  EXPECT_EQ(ahead.take(Ids{3})->front().depth, 3);
  EXPECT_EQ(ahead.take(Ids{1, 5})->front().depth, 1);
  EXPECT_EQ(ahead.take(Ids{2, 6})->front().depth, 2);
  EXPECT_EQ(reader.read, (std::vector<Ids>{{1, 5}, {2, 6}, {3}}));
}

TEST(ReadAhead, HasNothingThatIsNotExpectedAndGivesThingsOnce) {
  Reader reader;
  reader.gate.set_value();
  ReadAhead ahead(reader.function());
  EXPECT_FALSE(ahead.take(Ids{1}).has_value());
  ahead.expect({{1, 2}});
  EXPECT_FALSE(ahead.take(Ids{1}).has_value());
  EXPECT_FALSE(ahead.take(Ids{2, 1}).has_value());
  EXPECT_TRUE(ahead.take(Ids{1, 2}).has_value());
  EXPECT_FALSE(ahead.take(Ids{1, 2}).has_value());
}

TEST(ReadAhead, WaitsForWhatIsStillToBeRead) {
  Reader reader;
  ReadAhead ahead(reader.function());
  ahead.expect({{1}, {2}});
  auto second = std::async(std::launch::async, [&] { return ahead.take(Ids{2})->front().depth; });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  reader.gate.set_value();
  EXPECT_EQ(second.get(), 2);
}

// Three steps are expected in a row, and the first step is dropped.
TEST(ReadAhead, KeepsTheStepThatIsBeingTakenBesideTheNext) {
  Reader reader;
  reader.gate.set_value();
  ReadAhead ahead(reader.function());
  ahead.expect({{1}, {11}});
  EXPECT_TRUE(ahead.take(Ids{1}).has_value());
  ahead.expect({{2}});
  EXPECT_TRUE(ahead.take(Ids{11}).has_value());
  ahead.expect({{3}});
  EXPECT_TRUE(ahead.take(Ids{2}).has_value());
  ahead.expect({{4}});
  ahead.expect({{5}});
  EXPECT_FALSE(ahead.take(Ids{3}).has_value());
  EXPECT_TRUE(ahead.take(Ids{4}).has_value());
}

TEST(ReadAhead, ForgetsAllAndReadsNoMore) {
  Reader reader;
  ReadAhead ahead(reader.function());
  ahead.expect({{1}, {2}, {3}});
  auto forgotten = std::async(std::launch::async, [&] { ahead.forget(); });
  reader.gate.set_value();
  forgotten.get();
  const std::size_t read = reader.read.size();
  EXPECT_FALSE(ahead.take(Ids{3}).has_value());
  ahead.expect({{4}});
  EXPECT_EQ(ahead.take(Ids{4})->front().depth, 4);
  EXPECT_EQ(reader.read.size(), read + 1);
}

// The first micro-batch is read only when the second has been.
TEST(ReadAhead, HasSeveralReadAtOnceAndGivesEachWhatIsItsOwn) {
  std::promise<void> second;
  std::shared_future<void> is_read = second.get_future().share();
  const auto read = [&](const Ids& samples) {
    if (samples.front() == 1) is_read.wait();
    if (samples.front() == 2) second.set_value();
    return std::vector<PrefixRows>{{.depth = static_cast<int>(samples.front())}};
  };
  ReadAhead ahead(read, 2);
  ahead.expect({{1}, {2}, {3}});
  EXPECT_EQ(ahead.take(Ids{1})->front().depth, 1);
  EXPECT_EQ(ahead.take(Ids{2})->front().depth, 2);
  EXPECT_EQ(ahead.take(Ids{3})->front().depth, 3);
}

TEST(ReadAhead, ForgetsWhatSeveralRead) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> reading{0};
    const auto read = [&](const Ids& samples) {
      ++reading;
      std::this_thread::yield();
      --reading;
      return std::vector<PrefixRows>{{.depth = static_cast<int>(samples.front())}};
    };
    ReadAhead ahead(read, 4);
    std::vector<Ids> many;
    for (std::int64_t i = 0; i < 100; ++i) many.push_back({i});
    ahead.expect(many);
    (void)ahead.take(Ids{round});
    ahead.forget();
    EXPECT_EQ(reading, 0);
    EXPECT_FALSE(ahead.take(Ids{99}).has_value());
    ahead.expect({{7}});
    EXPECT_EQ(ahead.take(Ids{7})->front().depth, 7);
  }
}

TEST(ReadAhead, ThrowsWhereTheReadingHas) {
  Reader reader;
  reader.gate.set_value();
  ReadAhead ahead(reader.function());
  ahead.expect({{-1}, {2}});
  EXPECT_THROW((void)ahead.take(Ids{-1}), std::runtime_error);
  EXPECT_EQ(ahead.take(Ids{2})->front().depth, 2);
}

TEST(ReadAhead, EndsWithMuchLeftToRead) {
  Reader reader;
  reader.gate.set_value();
  ReadAhead ahead(reader.function());
  std::vector<Ids> many;
  for (std::int64_t i = 0; i < 10'000; ++i) many.push_back({i});
  ahead.expect(many);
}

}  // namespace
}  // namespace frazil
