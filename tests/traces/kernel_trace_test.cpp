#include "traces/kernel_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/traces/sample_timelines.h"

namespace frazil {
namespace {

using nlohmann::json;

json rows_of(const Timeline& timeline, int device) {
  return json::parse(to_kernel_trace(timeline, DeviceId{device})).at("traceEvents");
}

std::int64_t ns(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// The trace is of device 1 of 4: two micro-batches run forward, the first one's output is sent
// while the second runs, and one runs backward; a reduction follows, and the host works before all.
TEST(KernelTrace, WritesOneDevice) {
  const Timeline timeline{
      .devices = 4,
      .spans = {make_span(1, "BARRIER", 0, 100, Lane::kHost), make_span(0, "0F0", 5, 900),
                make_span(1, "1F0", 1500, 2500), make_span(1, "1F1", 2500, 3500),
                make_span(1, "1SEND_F0", 2500, 2750, Lane::kSend), make_span(1, "1B0", 5000, 7001),
                make_span(1, "1REDUCE_GRAD", 7001, 7501, Lane::kCollective)}};
  EXPECT_EQ(to_kernel_trace(timeline, DeviceId{1}),
            R"({"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank": 1,"world_size":4},)"
            R"("displayTimeUnit":"ns","traceEvents":[
{"name":"process_name","ph":"M","pid":3,"args":{"name":"host of device 1"}},
{"name":"process_name","ph":"M","pid":4,"args":{"name":"device 1"}},
{"name":"thread_name","ph":"M","pid":4,"tid":7,"args":{"name":"compute"}},
{"name":"thread_name","ph":"M","pid":4,"tid":8,"args":{"name":"send"}},
{"name":"thread_name","ph":"M","pid":4,"tid":10,"args":{"name":"collective"}},
{"name":"thread_name","ph":"M","pid":3,"tid":2,"args":{"name":"host"}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#0","pid":3,"tid":1,"ts":0.000,"dur":7.501},
{"ph":"X","cat":"cpu_op","name":"BARRIER","pid":3,"tid":2,"ts":0.000,"dur":0.100},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":3,"tid":1,"ts":0.000,"dur":0.000,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"1F0","pid":4,"tid":7,"ts":1.500,"dur":1.000,"args":{"device":1,"stream":7,"correlation":1,"step":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":3,"tid":1,"ts":1.500,"dur":0.000,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"1F1","pid":4,"tid":7,"ts":2.500,"dur":1.000,"args":{"device":1,"stream":7,"correlation":2,"step":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":3,"tid":1,"ts":0.000,"dur":0.000,"args":{"correlation":3}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv 1SEND_F0","pid":4,"tid":8,"ts":2.500,"dur":0.250,"args":{"device":1,"stream":8,"correlation":3,"step":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":3,"tid":1,"ts":2.500,"dur":0.000,"args":{"correlation":4}},
{"ph":"X","cat":"kernel","name":"1B0","pid":4,"tid":7,"ts":5.000,"dur":2.001,"args":{"device":1,"stream":7,"correlation":4,"step":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":3,"tid":1,"ts":0.000,"dur":0.000,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce 1REDUCE_GRAD","pid":4,"tid":10,"ts":7.001,"dur":0.500,"args":{"device":1,"stream":10,"correlation":5,"step":0}}
]}
)");
}

TEST(KernelTrace, SaysWhatAnActionIsInTheWordsOfTheProfiler) {
  const std::vector<std::array<const char*, 3>> expected = {
      {"2W0", "kernel", "2W0"},
      {"2R0.1", "kernel", "2R0.1"},
      {"2U", "kernel", "2U"},
      {"(2F1;2B0)OVERLAP_F_B", "kernel", "(2F1;2B0)OVERLAP_F_B"},
      {"1:2RECV_B0>5", "kernel", "ncclDevKernel_SendRecv 1:2RECV_B0>5"},
      {"BARRIER", "kernel", "ncclDevKernel_AllReduce BARRIER"},
      {"2UNSHARD", "kernel", "ncclDevKernel_AllGather 2UNSHARD"},
      {"2RESHARD", "gpu_memset", "Memset 2RESHARD"},
      {"2MOVE(stash0 d1>host)", "gpu_memcpy", "Memcpy DtoH 2MOVE(stash0 d1>host)"},
      {"2MOVE(optimizer@3 disk>d1)", "gpu_memcpy", "Memcpy HtoD 2MOVE(optimizer@3 disk>d1)"},
      {"2MOVE(parameters d0>d1)", "gpu_memcpy", "Memcpy PtoP 2MOVE(parameters d0>d1)"},
      {"2MOVE(input disk>host)", "gpu_memcpy", "Memcpy HtoH 2MOVE(input disk>host)"}};
  for (const auto& [action, category, name] : expected) {
    SCOPED_TRACE(action);
    const json rows = rows_of({.devices = 1, .spans = {make_span(0, action, 0, 5)}}, 0);
    EXPECT_EQ(rows.back().at("cat"), category);
    EXPECT_EQ(rows.back().at("name"), name);
  }
}

// Step 7 begins on this device while a reduction of step 5 is still to come.
TEST(KernelTrace, LaunchesEverythingInItsOwnStep) {
  const Timeline timeline{.devices = 1,
                          .spans = {make_span(0, "0F0", 10, 20, Lane::kCompute, 5),
                                    make_span(0, "0B0", 20, 40, Lane::kCompute, 5),
                                    make_span(0, "0F0", 50, 60, Lane::kCompute, 7),
                                    make_span(0, "0B0", 60, 80, Lane::kCompute, 7),
                                    make_span(0, "0REDUCE_GRAD", 55, 58, Lane::kCollective, 5),
                                    make_span(0, "1REDUCE_GRAD", 58, 59, Lane::kCollective, 5)}};
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> steps;
  std::map<std::string, std::int64_t> launches;
  std::int64_t launched = 0;
  for (const json& row : rows_of(timeline, 0)) {
    if (row.at("ph") != "X") continue;
    const std::string name = row.at("name");
    if (name.starts_with("ProfilerStep")) {
      steps[name] = {ns(row.at("ts")), ns(row.at("ts")) + ns(row.at("dur"))};
    } else if (row.at("cat") == "cuda_runtime") {
      launched = ns(row.at("ts"));
    } else {
      launches[name + " of " + row.at("args").at("step").dump()] = launched;
    }
  }
  const decltype(steps) expected_steps = {{"ProfilerStep#5", {10, 50}},
                                          {"ProfilerStep#7", {50, 80}}};
  EXPECT_EQ(steps, expected_steps);
  const decltype(launches) expected = {{"0F0 of 5", 10},
                                       {"0B0 of 5", 10},
                                       {"0F0 of 7", 50},
                                       {"0B0 of 7", 50},
                                       {"ncclDevKernel_AllReduce 0REDUCE_GRAD of 5", 10},
                                       {"ncclDevKernel_AllReduce 1REDUCE_GRAD of 5", 10}};
  EXPECT_EQ(launches, expected);
}

// The analysis tells kernels apart by ^nccl.*Kernel.* and ^(Memcpy|Memset|dma).*
enum class Meaning { kCommunication, kMemory, kComputation };
Meaning meaning_of(const std::string& name) {
  if (name.starts_with("nccl") && name.find("Kernel", 4) != std::string::npos) {
    return Meaning::kCommunication;
  }
  for (const char* prefix : {"Memcpy", "Memset", "dma"}) {
    if (name.starts_with(prefix)) return Meaning::kMemory;
  }
  return Meaning::kComputation;
}

// Returns the action's text behind "nccl... ", "Memset " or "Memcpy DtoH ".
std::string without_prefix(const std::string& name) {
  if (name.starts_with("Memcpy ")) return name.substr(std::string("Memcpy DtoH ").size());
  if (!name.starts_with("nccl") && !name.starts_with("Memset ")) return name;
  return name.substr(name.find(' ') + 1);
}

Meaning meaning_of(const Action& action) {
  if (is_compute(action.kind)) return Meaning::kComputation;
  const bool is_memory = action.kind == ActionKind::kMove || action.kind == ActionKind::kReshard;
  return is_memory ? Meaning::kMemory : Meaning::kCommunication;
}

TEST(KernelTrace, HasEverySpanOfTheDeviceOnce) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    const Timeline timeline = make_random_timeline(random);
    Timeline sorted = timeline;
    sort_spans(sorted);
    for (int device = 0; device < timeline.devices; ++device) {
      ASSERT_EQ(to_kernel_trace(timeline, DeviceId{device}),
                to_kernel_trace(sorted, DeviceId{device}));
      const json rows = rows_of(timeline, device);
      std::map<std::int64_t, json> launches;
      std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> steps;
      std::multiset<std::string> found;
      for (const json& row : rows) {
        if (row.at("ph") != "X") continue;
        const std::string category = row.at("cat");
        const std::string name = row.at("name");
        const std::int64_t start = ns(row.at("ts"));
        const std::int64_t end = start + ns(row.at("dur"));
        const std::string text = without_prefix(name);
        const std::string times = " " + std::to_string(start) + " " + std::to_string(end);
        if (category == "user_annotation") {
          steps[std::stoll(name.substr(name.find('#') + 1))] = {start, end};
        } else if (category == "cuda_runtime") {
          ASSERT_TRUE(launches.emplace(row.at("args").at("correlation"), row).second);
        } else if (category == "cpu_op") {
          found.insert("host " + text + times);
        } else {
          const json& arguments = row.at("args");
          ASSERT_EQ(arguments.at("device"), device);
          ASSERT_EQ(arguments.at("stream"), row.at("tid"));
          ASSERT_EQ(meaning_of(name), meaning_of(parse_action(text)));
          const json launch = launches.at(arguments.at("correlation"));
          launches.erase(arguments.at("correlation"));
          ASSERT_LE(ns(launch.at("ts")), start);
          const auto [begin, until] = steps.at(arguments.at("step"));
          ASSERT_GE(ns(launch.at("ts")), begin);
          ASSERT_LE(ns(launch.at("ts")), until);
          const auto lane = static_cast<Lane>(row.at("tid").get<int>() - 7);
          found.insert(std::string(lane_name(lane)) + " " + text + times);
        }
      }
      ASSERT_TRUE(launches.empty());
      std::multiset<std::string> expected;
      for (const Span& span : timeline.spans) {
        if (span.device != DeviceId{device}) continue;
        expected.insert(std::string(lane_name(span.lane)) + " " + to_text(span.action) + " " +
                        std::to_string(span.start.time_since_epoch().count()) + " " +
                        std::to_string(span.end.time_since_epoch().count()));
        ASSERT_TRUE(steps.contains(span.action.step));
      }
      ASSERT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace frazil
