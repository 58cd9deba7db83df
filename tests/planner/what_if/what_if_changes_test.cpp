#include "planner/what_if/what_if_changes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "planner/prediction/simulate_plan.h"
#include "planner/what_if/what_if.h"
#include "profiles/error.h"
#include "tests/support/sample_models.h"

namespace frazil {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

WhatIfChange parse(const std::string& text) { return parse_change(text, "--what-if"); }

std::string refusal(const std::string& text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

Measured apply(const std::vector<std::string>& texts, const Measured& measured) {
  std::vector<WhatIfChange> changes;
  for (const std::string& text : texts) changes.push_back(parse(text));
  return apply_changes(changes, measured, "--what-if");
}

std::string refusal(const std::string& text, const Measured& measured) {
  try {
    apply({text}, measured);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

// Makes four devices with links of 1 us and 1 GB/s, and three layers of F 10, I 20, W 30.
Measured make_measured() {
  return {
      make_chain(3, nanoseconds(10), nanoseconds(20), nanoseconds(30)),
      make_uniform_cluster(4, Bytes{1'000'000}, {microseconds(1), BytesPerSecond{1'000'000'000}})};
}

TEST(WhatIfChanges, AreReadFromTheirText) {
  EXPECT_EQ(parse("device 2 x1.5"), WhatIfChange(ScaleDevice{DeviceId{2}, {3, 2}}));
  EXPECT_EQ(parse("straggler 3 +30%"), WhatIfChange(ScaleDevice{DeviceId{3}, {13, 10}}));
  EXPECT_EQ(parse("straggler 3 +12.5%"), WhatIfChange(ScaleDevice{DeviceId{3}, {9, 8}}));
  EXPECT_EQ(parse("straggler 3 +0%"), WhatIfChange(ScaleDevice{DeviceId{3}, {1, 1}}));
  EXPECT_EQ(parse("link 0>1 x2"),
            WhatIfChange(ScaleLink{DeviceId{0}, DeviceId{1}, true, true, {2, 1}}));
  EXPECT_EQ(parse("link 10>1 latency x0.25"),
            WhatIfChange(ScaleLink{DeviceId{10}, DeviceId{1}, true, false, {1, 4}}));
  EXPECT_EQ(parse("link 0>1 transfer x0"),
            WhatIfChange(ScaleLink{DeviceId{0}, DeviceId{1}, false, true, {0, 1}}));
  EXPECT_EQ(parse("  layer  5 x0.50 "), WhatIfChange(ScaleLayer{LayerId{5}, {1, 2}}));
  EXPECT_EQ(parse("layer 5 x1000000"), WhatIfChange(ScaleLayer{LayerId{5}, {1'000'000, 1}}));
  EXPECT_EQ(parse("layer 5 x0.000000001"),
            WhatIfChange(ScaleLayer{LayerId{5}, {1, 1'000'000'000}}));
  EXPECT_EQ(parse("layer 5 x999999.999999999"),
            WhatIfChange(ScaleLayer{LayerId{5}, {999'999'999'999'999, 1'000'000'000}}));
}

TEST(WhatIfChanges, RefuseTextOfNoForm) {
  for (const char* text : {"",
                           " ",
                           "device",
                           "device 2",
                           "device 2 1.5",
                           "device x1.5",
                           "device -1 x2",
                           "device 2 x1.5 x2",
                           "device two x2",
                           "Device 2 x2",
                           "gpu 2 x2",
                           "straggler 3 30%",
                           "straggler 3 +30",
                           "straggler 3 -30%",
                           "straggler 3 x2",
                           "link 0 x2",
                           "link 0>1",
                           "link 0>>1 x2",
                           "link >1 x2",
                           "link 0> x2",
                           "link 0<1 x2",
                           "link 0>1 bandwidth x2",
                           "link 0>1 latency transfer x2",
                           "layer 5 +30%",
                           "layer 1.5 x2",
                           "device 2 X2"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(refusal(text),
              "--what-if: found `" + std::string(text) +
                  "`, expected device N xF, straggler N +P%, link N>M xF, link N>M latency xF, "
                  "link N>M transfer xF or layer N xF");
  }
}

TEST(WhatIfChanges, RefuseNumbersThatAreNone) {
  for (const char* factor : {"x", "x.5", "x1.", "x1.5.2", "x-1", "x+1", "x1e3", "x1,5", "xinf",
                             "x1000000.1", "x1000001", "x99999999", "x1.0000000001", "x1/3"}) {
    EXPECT_EQ(refusal(std::string("layer 1 ") + factor),
              "--what-if: found `layer 1 " + std::string(factor) +
                  "`, expected a factor such as x1.5, up to x1000000, with at most nine decimal "
                  "places");
  }
  for (const char* percent : {"+%", "+1000001%", "+-3%", "+3.%", "++3%"}) {
    EXPECT_NE(refusal(std::string("straggler 1 ") + percent).find("a percentage such as +30%"),
              std::string::npos)
        << percent;
  }
  EXPECT_NE(refusal("layer 2147483648 x2").find("below 2^31"), std::string::npos);
  EXPECT_NE(refusal("device 2 x0").find("a factor above 0"), std::string::npos);
  EXPECT_NE(refusal("device 2 x0.000").find("a factor above 0"), std::string::npos);
  EXPECT_NE(refusal("link 1>1 x2").find("two different devices"), std::string::npos);
}

TEST(WhatIfChanges, ADeviceTakesItsFactorInMillionths) {
  const Measured measured = make_measured();
  Measured expected = measured;
  expected.cluster.devices[2].time_ppm = 1'500'000;
  EXPECT_EQ(apply({"device 2 x1.5"}, measured), expected);
  expected.cluster.devices[2].time_ppm = 1'950'000;
  EXPECT_EQ(apply({"device 2 x1.5", "straggler 2 +30%"}, measured), expected);
}

TEST(WhatIfChanges, ALinkTakesThatManyTimesAsLongInOneDirection) {
  const Measured measured = make_measured();
  const auto link_of = [&](const std::string& text) {
    return apply({text}, measured).cluster.link(DeviceId{0}, DeviceId{1});
  };
  EXPECT_EQ(link_of("link 0>1 x2"), (Link{microseconds(2), BytesPerSecond{500'000'000}}));
  EXPECT_EQ(link_of("link 0>1 latency x2"), (Link{microseconds(2), BytesPerSecond{1'000'000'000}}));
  EXPECT_EQ(link_of("link 0>1 transfer x2"), (Link{microseconds(1), BytesPerSecond{500'000'000}}));
  EXPECT_EQ(link_of("link 0>1 x0"), (Link{}));
  EXPECT_EQ(link_of("link 1>0 x2"), measured.cluster.default_link);
  const Bytes size{12'345};
  EXPECT_EQ(size / link_of("link 0>1 x2").bandwidth,
            2 * (size / measured.cluster.default_link.bandwidth));
}

TEST(WhatIfChanges, LinksStaySortedAndOverridesAreScaledInPlace) {
  Measured measured = make_measured();
  measured.cluster.links = {{DeviceId{1}, DeviceId{2}, {nanoseconds(5), BytesPerSecond{7}}}};
  const Measured changed =
      apply({"link 2>1 x3", "link 1>2 x7", "link 0>3 latency x0", "link 1>2 latency x2"}, measured);
  EXPECT_NO_THROW(validate(changed.cluster, "cluster"));
  const Link& usual = measured.cluster.default_link;
  EXPECT_EQ(changed.cluster.links,
            (std::vector<DirectedLink>{
                {DeviceId{0}, DeviceId{3}, {nanoseconds(0), usual.bandwidth}},
                {DeviceId{1}, DeviceId{2}, {nanoseconds(70), BytesPerSecond{1}}},
                {DeviceId{2}, DeviceId{1}, {microseconds(3), BytesPerSecond{333'333'333}}}}));
}

TEST(WhatIfChanges, ALinkWithoutAnOverrideIsThatOfItsClass) {
  Measured measured = make_measured();
  measured.cluster.devices[0].process = ProcessId{0};
  measured.cluster.link_classes[LinkClass::kHost] = Link{microseconds(6), {}};
  const Cluster changed = apply({"link 0>1 x3"}, measured).cluster;
  EXPECT_EQ(changed.link(DeviceId{0}, DeviceId{1}), (Link{microseconds(18), {}}));
  EXPECT_EQ(changed.link(DeviceId{0}, DeviceId{2}), (Link{microseconds(6), {}}));
  EXPECT_EQ(changed.link(DeviceId{1}, DeviceId{2}), measured.cluster.default_link);
}

TEST(WhatIfChanges, AnUnlimitedBandwidthStaysUnlimited) {
  Measured measured = make_measured();
  measured.cluster.default_link.bandwidth = BytesPerSecond{};
  EXPECT_EQ(apply({"link 0>1 x3"}, measured).cluster.link(DeviceId{0}, DeviceId{1}),
            (Link{microseconds(3), BytesPerSecond{}}));
}

TEST(WhatIfChanges, ALayerScalesAllItsTimesAndNoBytes) {
  const Measured measured = make_measured();
  Measured expected = measured;
  expected.profile.layers[1].update = nanoseconds(0);
  for (CostSample& cost : expected.profile.layers[1].costs) {
    for (Duration* time : {&cost.forward, &cost.forward_frozen, &cost.backward_input,
                           &cost.backward_weight, &cost.backward_weight_alone}) {
      *time *= 3;
    }
  }
  EXPECT_EQ(apply({"layer 1 x3"}, measured), expected);
  EXPECT_EQ(apply({"layer 1 x1"}, measured), measured);
  EXPECT_EQ(apply({"layer 1 x0"}, measured).profile.layers[1].costs[0].backward_weight,
            nanoseconds(0));
}

TEST(WhatIfChanges, RoundToTheNearestWholeNumberHalvesUp) {
  Measured measured = make_measured();
  const auto update_after = [&](Duration update, const std::string& factor) {
    measured.profile.layers[0].update = update;
    return apply({"layer 0 " + factor}, measured).profile.layers[0].update;
  };
  EXPECT_EQ(update_after(nanoseconds(3), "x0.5"), nanoseconds(2));
  EXPECT_EQ(update_after(nanoseconds(1), "x0.499999999"), nanoseconds(0));
  EXPECT_EQ(update_after(nanoseconds(1), "x0.5"), nanoseconds(1));
  EXPECT_EQ(update_after(nanoseconds(10), "x1.25"), nanoseconds(13));
  EXPECT_EQ(update_after(nanoseconds(10), "x1.24"), nanoseconds(12));
  // No double holds the exact product of 2^53 - 1 and 0.999999999.
  EXPECT_EQ(update_after(nanoseconds((std::int64_t{1} << 53) - 1), "x0.999999999"),
            nanoseconds(9'007'199'245'733'792));
}

// Times scaled by n/d are within half a nanosecond of the exact ratio: |2 d scaled - 2 n t| <= d.
TEST(WhatIfChanges, AreWithinHalfAUnitOfTheExactProduct) {
  __extension__ using Wide = __int128;
  Measured measured = make_measured();
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto time = static_cast<std::int64_t>(random() % 1'000'000'000);
    const auto whole = static_cast<std::int64_t>(random() % 1'000);
    const auto places = static_cast<std::int64_t>(random() % 1'000'000);
    std::string decimals = std::to_string(1'000'000 + places).substr(1);
    measured.profile.layers[0].update = Duration{time};
    const std::string text = "layer 0 x" + std::to_string(whole) + "." + decimals;
    const std::int64_t scaled = apply({text}, measured).profile.layers[0].update.count();
    const Wide denominator = 1'000'000;
    const Wide miss = 2 * denominator * scaled - 2 * (whole * denominator + places) * Wide{time};
    EXPECT_LE(miss, denominator);
    EXPECT_GT(miss, -denominator);
  }
}

TEST(WhatIfChanges, RefuseDevicesAndLayersThatAreNotThere) {
  const Measured measured = make_measured();
  EXPECT_EQ(refusal("device 4 x2", measured),
            "--what-if: found device 4, expected a device below 4");
  EXPECT_EQ(refusal("link 4>1 x2", measured),
            "--what-if: found device 4, expected a device below 4");
  EXPECT_EQ(refusal("link 1>9 x2", measured),
            "--what-if: found device 9, expected a device below 4");
  EXPECT_EQ(refusal("layer 3 x2", measured), "--what-if: found layer 3, expected a layer below 3");
}

TEST(WhatIfChanges, RefuseResultsOutsideWhatFilesMayHold) {
  Measured measured = make_measured();
  EXPECT_EQ(refusal("device 0 x0.0000004", measured),
            "--what-if: found device 0: a time_ppm of 1000000 x 1/2500000, expected 1 to "
            "1000000000000");
  EXPECT_EQ(refusal("device 0 x1000000", measured), "taken");
  measured.cluster.devices[0].time_ppm = 1'000'001;
  EXPECT_NE(refusal("device 0 x1000000", measured).find("a time_ppm of 1000001"),
            std::string::npos);
  measured.cluster.default_link = {nanoseconds(std::int64_t{1} << 53), BytesPerSecond{2}};
  EXPECT_NE(refusal("link 0>1 latency x1.1", measured).find("link 0>1: a latency in ns"),
            std::string::npos);
  EXPECT_EQ(refusal("link 0>1 transfer x4", measured), "taken");
  EXPECT_NE(refusal("link 0>1 transfer x5", measured).find("a bandwidth in bytes per second of 2"),
            std::string::npos);
  measured.profile.layers[2].costs[0].forward = nanoseconds(std::int64_t{1} << 50);
  EXPECT_EQ(refusal("layer 2 x8", measured), "taken");
  EXPECT_NE(refusal("layer 2 x8.01", measured).find("layer 2: a time in ns"), std::string::npos);
}

Duration makespan_with(const std::vector<std::string>& texts) {
  WhatIf what_if;
  what_if.stages = 2;
  what_if.micro_batches = 3;
  what_if.schedule = ScheduleKind::kGpipe;
  what_if.forward = {milliseconds(2)};
  what_if.backward_input = {milliseconds(3)};
  what_if.backward_weight = {milliseconds(1)};
  what_if.hop = milliseconds(1);
  WhatIfInputs inputs = make_what_if(what_if);
  const auto [profile, cluster] = apply(texts, {inputs.profile, inputs.cluster});
  return simulate_plan(inputs.plan, {profile, cluster}).makespan;
}

// GPipe takes (m + p - 1)(F + B) + 2 (p - 1) hops = 4 x 6 + 2 = 26 ms, of which the last stage does
// 18.
TEST(WhatIfChanges, ChangeWhatASimulationAnswers) {
  EXPECT_EQ(makespan_with({}), milliseconds(26));
  EXPECT_EQ(makespan_with({"link 0>1 x2"}), milliseconds(27));
  EXPECT_EQ(makespan_with({"link 0>1 x0", "link 1>0 x0"}), milliseconds(24));
  EXPECT_EQ(makespan_with({"device 1 x2"}), milliseconds(26 + 18));
  EXPECT_EQ(makespan_with({"straggler 1 +100%"}), milliseconds(26 + 18));
  // Layer 2 is the second stage; the first stage has layer 1, and layer 0, which costs nothing.
  EXPECT_EQ(makespan_with({"layer 2 x2"}), milliseconds(26 + 18));
  // Then only the first stage works: three F, there and back after the last, three B.
  EXPECT_EQ(makespan_with({"layer 2 x0"}), milliseconds(6 + 2 + 12));
}

}  // namespace
}  // namespace frazil
