#include "analysis/memory_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "analysis/svg/memory_chart.h"
#include "profiles/error.h"
#include "tests/analysis/sample_runs.h"

namespace frazil {
namespace {

MemoryRecord parse(const std::string& text) { return parse_memory_record(text, "memory.json"); }

HeldMemory draw_held(std::mt19937_64& engine) {
  const auto draw = [&](std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(0, high)(engine);
  };
  HeldMemory held;
  for (Bytes& kind : held.kinds) kind.count = draw(1 << 20);
  Duration at{draw(5)};
  for (std::int64_t i = draw(6); i > 0; --i, at += Duration{draw(5)}) {
    held.curve.push_back({TimePoint{at}, Bytes{draw(std::int64_t{1} << 62)}});
    held.peak = std::max(held.peak, held.curve.back().total);
  }
  return held;
}

TEST(MemoryRecord, RoundTrips) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 engine(seed);
    MemoryRecord record{.step = static_cast<Step>(seed * 7),
                        .process_peak_resident = Bytes{static_cast<std::int64_t>(seed)},
                        .devices = {}};
    for (std::uint64_t d = 0; d < seed % 4; ++d) {
      DeviceMemory& device = record.devices.emplace_back();
      device.name = "a \"device\"\n" + std::to_string(d);
      if (d % 2 == 1) device.limit = Bytes{1 << 20};
      device.predicted = draw_held(engine);
      device.measured = draw_held(engine);
      device.allocator_peak = Bytes{5};
    }
    const std::string text = to_json(record);
    EXPECT_EQ(parse(text), record) << text;
    EXPECT_EQ(to_json(parse(text)), text);
  }
}

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error in " + text;
}

TEST(MemoryRecord, RefusesWhatIsNoRecord) {
  const std::string good = to_json(sample_memory());
  EXPECT_EQ(parse(good), sample_memory());
  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = good;
    const std::size_t at = changed.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return changed.replace(at, old.size(), text);
  };
  EXPECT_EQ(error_of(with("frazil.memory", "frazil.plan")).find("memory.json:1: found "), 0U);
  EXPECT_EQ(error_of(with("\"step\":21", "\"step\":-1")).find("memory.json:1: found `-1`"), 0U);
  EXPECT_EQ(error_of(with("[2000000,", "[-5,")).find("memory.json:3: found `-5`"), 0U);
  EXPECT_NE(error_of(with("[2000000,", "[")).find("expected [ns, bytes]"), std::string::npos);
  EXPECT_NE(error_of(with("\"limit_bytes\"", "\"bound\"")).find("unknown key"), std::string::npos);
}

TEST(MemoryRecord, IsNothingWhereThereIsNoFile) {
  const TemporaryFolder folder("no_memory");
  EXPECT_EQ(read_memory_record(folder.path() / "memory.json"), std::nullopt);
}

TEST(MemoryRecord, IsATableOfWhatEachDeviceHolds) {
  EXPECT_EQ(to_text(tabulate_memory(sample_memory())),
            "device   memory             predicted  measured   ratio\n"
            "-------  -----------------  ---------  ---------  -----\n"
            "first    parameters         1.00 MiB   1.00 MiB   1.000\n"
            "first    stash              2.00 MiB   4.00 MiB   0.500\n"
            "first    peak total         3.00 MiB   5.00 MiB   0.600\n"
            "first    allocator at most  3.00 MiB   6.00 MiB   0.500\n"
            "process  resident at most           -  47.68 MiB      -\n");
}

TEST(MemoryRecord, OfAllPhasesIsARowForEachDevice) {
  const MemoryRecord record = sample_memory();
  EXPECT_EQ(to_text(tabulate_memory({{20, &record}, {40, &record}})),
            "from step  device  parameters  stash            peak total       allocator\n"
            "---------  ------  ----------  ---------------  ---------------  ---------\n"
            "       20  first   1.00 MiB    2.00 / 4.00 MiB  3.00 / 5.00 MiB  6.00 MiB\n"
            "       40  first   1.00 MiB    2.00 / 4.00 MiB  3.00 / 5.00 MiB  6.00 MiB\n");
}

TEST(MemoryChart, HasBothCurvesToOneEndAndTheLimit) {
  const Chart chart = make_memory_chart(sample_memory().devices.at(0));
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.y_label, "MiB");
  EXPECT_EQ(chart.series[0].x, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(chart.series[0].y, (std::vector<double>{1, 3, 1, 1}));
  EXPECT_EQ(chart.series[1].x, (std::vector<double>{0, 2, 3, 3}));
  EXPECT_EQ(chart.series[1].y, (std::vector<double>{1, 5, 1, 1}));
  EXPECT_EQ(chart.series[1].remark, ": at most 5.00 MiB");
  ASSERT_EQ(chart.levels.size(), 2U);
  EXPECT_EQ(chart.levels[0].second, "allocator 6.00 MiB");
  EXPECT_EQ(chart.levels[1].second, "capacity 8.00 MiB");
}

TEST(MemoryChart, OfALongCurveKeepsEveryPeakAndTheEnd) {
  std::vector<MemoryMoment> curve;
  constexpr int kMoments = 100'000;
  for (int i = 0; i < kMoments; ++i) {
    curve.push_back({TimePoint{Duration{i * 1000}}, Bytes{i == 77'777 ? 9'000 : i % 1'000}});
  }
  const Series series = make_memory_series("x", curve, {"bytes", 1});
  EXPECT_LT(series.x.size(), 1000U);
  EXPECT_EQ(*std::max_element(series.y.begin(), series.y.end()), 9'000);
  EXPECT_DOUBLE_EQ(series.x.back(), (kMoments - 1) / 1e3);
  EXPECT_EQ(series.y.back(), (kMoments - 1) % 1'000);
  EXPECT_TRUE(std::is_sorted(series.x.begin(), series.x.end()));
}

}  // namespace
}  // namespace frazil
