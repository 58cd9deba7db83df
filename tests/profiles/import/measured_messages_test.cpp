#include "profiles/import/measured_messages.h"

#include <gtest/gtest.h>

#include "profiles/error.h"
#include "tests/profiles/refusals.h"

namespace frazil {
namespace {

std::vector<SizedTime> times_of(const Link& link, const std::vector<std::int64_t>& sizes) {
  std::vector<SizedTime> times;
  for (const std::int64_t bytes : sizes) {
    times.push_back({bytes, link.latency + Duration{bytes * 1'000'000'000 / link.bandwidth.count}});
  }
  return times;
}

TEST(MeasuredMessages, GiveBackTheLinkThatTheyFollow) {
  const Link link{Duration{6'000}, {4'000'000'000}};
  const FittedLink fitted = fit_link(times_of(link, {0, 1 << 10, 1 << 16, 1 << 24}));
  EXPECT_NEAR(static_cast<double>(fitted.link.latency.count()), 6'000, 2);
  EXPECT_NEAR(static_cast<double>(fitted.link.bandwidth.count), 4e9, 4e6);
  EXPECT_LT(fitted.worst_error, 0.001);
}

TEST(MeasuredMessages, NeverGiveALatencyOrABandwidthBelowNothing) {
  // Large messages that are faster than small ones show no bandwidth.
  const FittedLink flat = fit_link({{0, Duration{900}}, {1 << 20, Duration{800}}});
  EXPECT_EQ(flat.link.bandwidth.count, 0);
  EXPECT_NEAR(static_cast<double>(flat.link.latency.count()), 850, 15);
  const FittedLink steep = fit_link({{1'000, Duration{100}}, {2'000, Duration{400}}});
  EXPECT_EQ(steep.link.latency, Duration{0});
  EXPECT_GT(steep.link.bandwidth.count, 0);
}

TEST(MeasuredMessages, OfNcclOnAGpuAreReadWithTheErrorsOfTheFit) {
  const MeasuredMessages measured = read_measured_messages(
      std::string(FRAZIL_SOURCE_FOLDER) + "/profiles/measured/h200-2026-11-26/nccl.jsonl");
  ASSERT_EQ(measured.messages.size(), 4U);
  EXPECT_EQ(measured.messages[0].bytes, 1'024);
  EXPECT_EQ(measured.messages[0].time, Duration{1'428'301});
  ASSERT_EQ(measured.all_reduces.size(), 3U);
  const FittedLink fitted = fit_link(measured.messages);
  EXPECT_NEAR(static_cast<double>(fitted.link.latency.count()), 1.45e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(fitted.link.bandwidth.count), 2.9e9, 0.5e9);
  EXPECT_LT(fitted.worst_error, 0.15);
  const SizedTime& largest = measured.all_reduces.back();
  const double ratio = static_cast<double>(price_pair_reduce(fitted.link, largest.bytes).count()) /
                       static_cast<double>(largest.time.count());
  EXPECT_GT(ratio, 0.7);
  EXPECT_LT(ratio, 1.1);
}

TEST(MeasuredMessages, SayWhatIsWrongWithAFile) {
  const std::string first = R"({"part":"p2p","bytes":1024,"one_way_us":5.5})"
                            "\n";
  const std::vector<Refusal> refusals = {
      {"one size", first, 1, "1 sizes of messages (p2p)", "at least two"},
      {"a time of nothing", first + R"({"part":"p2p","bytes":8,"one_way_us":0})", 2,
       "`0` at $.one_way_us", "a number from 0.001 to 1000000000"},
      {"no part", "{}", 1, "no \"part\" at $", "\"part\""},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    try {
      (void)parse_measured_messages(refusal.text, "bad file");
      ADD_FAILURE() << "taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.line(), refusal.line);
    }
  }
}

}  // namespace
}  // namespace frazil
