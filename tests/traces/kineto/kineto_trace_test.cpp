#include "traces/kineto/kineto_trace.h"

#include <gtest/gtest.h>

#include <sstream>

#include "profiles/error.h"
#include "tests/traces/kineto/kineto_text.h"
#include "traces/json_stream.h"

namespace frazil {
namespace {

KinetoTrace read(const std::string& text, std::string_view prefix = "layer:") {
  JsonStream stream(text, "t.json");
  return read_kineto_trace(stream, prefix);
}

std::string refusal_of_kineto(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

std::string around(const std::string& events) { return "{\"traceEvents\": [\n" + events + "\n]}"; }

// Writes everything that a trace holds as text.
std::string dump(const KinetoTrace& trace) {
  std::ostringstream out;
  out << trace.events << " events\n";
  for (const HostThread& thread : trace.threads) {
    out << "thread\n";
    for (const HostOperation& op : thread.operations) {
      out << trace.names[op.name] << ' ' << op.start << '+' << op.duration << " seq " << op.sequence
          << " id " << op.external_id << " fwd " << op.forward_thread << '\n';
    }
    for (const HostRange& range : thread.ranges) {
      out << "range " << trace.names[range.name] << ' ' << range.start << '+' << range.duration
          << " kind " << static_cast<int>(range.kind) << '\n';
    }
    for (const Launch& launch : thread.launches) {
      out << "launch " << launch.start << " corr " << launch.correlation << '\n';
    }
    for (const NodeInput& input : thread.node_inputs) {
      out << "input " << input.start << ' ' << input.bytes << " B\n";
    }
  }
  for (const DeviceActivity& activity : trace.device) {
    out << "device " << activity.start << '+' << activity.duration << " corr "
        << activity.correlation << " id " << activity.external_id
        << (activity.is_communication ? " communication" : "") << '\n';
  }
  return out.str();
}

KinetoText small_trace() {
  return KinetoText()
      .range("ProfilerStep#3", 11, 1712195495519689047, 1712195495519699047)
      .range("layer:0", 11, 1712195495519689050, 1712195495519690050)
      .op("aten::linear", 11, 1712195495519689100, 1712195495519689999, 42, R"("External id": 7, )")
      .launch(11, 1712195495519689200, 135)
      .op("aten::\"quoted\\", 12, 5, 6)
      .node("AddmmBackward0", 12, 1712195495519691000, 1712195495519692000, 42, 1,
            R"("Input type": ["float", "", "c10::Half"], "Input Dims": [[64, 10], [], [3]], )")
      .range("Optimizer.step#SGD.step", 11, 1712195495519693000, 1712195495519694000)
      .module("Linear_0", 11, 1712195495519689060, 1712195495519690010)
      .event("python_function", "torch/nn/modules/linear.py(100): forward", "11", 0, 1)
      .range("nccl:all_reduce", 11, 0, 1)
      .kernel("volta_sgemm", 1712195495519690000, 4928, 135, 7)
      .kernel("ncclDevKernel_AllReduce", 1712195495519690000, 10, 136)
      .event("gpu_user_annotation", "layer:0", "7", 0, 1)
      .event("ac2g", "ac2g", "\"text id\"", 0, 1);
}

const char* const kSmallDump =
    "15 events\n"
    "thread\n"
    "aten::linear 1712195495519689100+899 seq 42 id 7 fwd 0\n"
    "range ProfilerStep#3 1712195495519689047+10000 kind 0\n"
    "range layer:0 1712195495519689050+1000 kind 1\n"
    "range Optimizer.step#SGD.step 1712195495519693000+1000 kind 2\n"
    "range nn.Module: Linear_0 1712195495519689060+950 kind 3\n"
    "launch 1712195495519689200 corr 135\n"
    "thread\n"
    "aten::\"quoted\\ 5+1 seq -1 id 0 fwd 0\n"
    "autograd::engine::evaluate_function: AddmmBackward0 1712195495519691000+1000 seq 42 id 0 fwd "
    "1\n"
    "AddmmBackward0 1712195495519691001+999 seq 42 id 0 fwd 1\n"
    "input 1712195495519691001 2566 B\n"
    "device 1712195495519690000+4928 corr 135 id 7\n"
    "device 1712195495519690000+10 corr 136 id 0 communication\n";

TEST(KinetoTrace, KeepsWhatAnAttributionNeeds) {
  EXPECT_EQ(dump(read(small_trace().text())), kSmallDump);
}

TEST(KinetoTrace, ReadsTheSamePackedAndThroughAnyWindow) {
  const std::string text = small_trace().text();
  const TraceFile plain(text, "small.json");
  const TraceFile packed(pack(text), "small.json.gz");
  for (const std::size_t window : {1U, 7U, 64U, 1000U, 1U << 20}) {
    SCOPED_TRACE(window);
    JsonStream from_plain(plain.path(), window);
    EXPECT_EQ(dump(read_kineto_trace(from_plain, "layer:")), kSmallDump);
    JsonStream from_packed(packed.path(), window);
    EXPECT_EQ(dump(read_kineto_trace(from_packed, "layer:")), kSmallDump);
  }
}

TEST(KinetoTrace, TakesLayersByTheGivenPrefix) {
  const KinetoTrace trace = read(KinetoText()
                                     .range("layer:0", 1, 0, 1)
                                     .range("## forward ##", 1, 2, 3)
                                     .op("## inner", 1, 2, 3)
                                     .text(),
                                 "## ");
  ASSERT_EQ(trace.threads.size(), 1U);
  ASSERT_EQ(trace.threads[0].ranges.size(), 2U);
  EXPECT_EQ(trace.names[trace.threads[0].ranges[0].name], "## forward ##");
  EXPECT_EQ(trace.names[trace.threads[0].ranges[1].name], "## inner");
  EXPECT_TRUE(trace.threads[0].operations.empty());
}

TEST(KinetoTrace, ReadsWhatOldVersionsWrote) {
  const KinetoTrace trace = read(around(
      R"({"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 1, "tid": "1", "ts": 3, "dur": 2,
          "args": {"Device": 1, "External id": "12", "Input dims": [[2]], "Sequence number": 4}},
         {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": "1", "ts": 4,
          "dur": 1, "args": {"correlation": 9, "external id": "12"}},
         {"ph": "X", "cat": "Kernel", "name": "sgemm", "pid": 0, "tid": "stream 7", "ts": 5,
          "dur": 1, "args": {"correlation": 9}},
         {"ph": "B", "name": "begin"}, {"ph": "M", "args": {"name": "python"}})"));
  EXPECT_EQ(dump(trace),
            "5 events\nthread\naten::mm 3000+2000 seq 4 id 0 fwd 0\nlaunch 4000 corr 9\n"
            "device 5000+1000 corr 9 id 0\n");
}

TEST(KinetoTrace, RefusesBadTracesWithTheLine) {
  const auto op = [](const std::string& members) {
    return around(R"({"ph": "X", "cat": "cpu_op", "name": "n",)" + ("\n" + members) + "}");
  };
  ASSERT_EQ(refusal_of_kineto(op(R"("ts": 1, "dur": 2)")), "taken");
  EXPECT_EQ(refusal_of_kineto(op(R"("ts": 1, "dur": -0.001)")),
            "t.json:3: found a duration of -1 ns, expected 0 to 9007199254740992 ns");
  EXPECT_EQ(refusal_of_kineto(op(R"("dur": 2)")),
            "t.json:3: found an event without `ts`, expected `ts` in microseconds");
  EXPECT_EQ(refusal_of_kineto(op(R"("ts": 1)")),
            "t.json:3: found an event \"X\" without `dur`, expected `dur` in microseconds");
  EXPECT_EQ(refusal_of_kineto(op(R"("ts": "1", "dur": 2)")),
            "t.json:3: found `\"1\"`, expected a number");
  EXPECT_EQ(refusal_of_kineto(op(R"("ts": 1e40, "dur": 2)")),
            "t.json:3: found the time 1e40, expected microseconds below 2^62 ns");
  EXPECT_EQ(refusal_of_kineto(op(R"("ts": 1, "dur": 2, "args": {"Sequence number": 1.5})")),
            "t.json:3: found `1.5`, expected an integer that fits 64 bits");
  EXPECT_EQ(refusal_of_kineto(op(R"("ts": 1, "dur": 2, "args": {"External id": -4})")),
            "t.json:3: found the External id -4, expected 0 to 2^32 - 1");
  EXPECT_EQ(refusal_of_kineto("{\"a\": 1}\n"),
            "t.json:1: found no `traceEvents`, expected a trace of PyTorch's profiler");
  EXPECT_EQ(refusal_of_kineto("{\"traceEvents\": [],\n\"traceEvents\": []}"),
            "t.json:2: found `traceEvents` again, expected it once");
  EXPECT_EQ(refusal_of_kineto("[]"), "t.json:1: found `[]`, expected an object");
  EXPECT_EQ(refusal_of_kineto("{\"traceEvents\": 5}"), "t.json:1: found `5}`, expected an array");
}

TEST(KinetoTrace, RefusesATraceCutAnywhere) {
  const std::string text = small_trace().text();
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    ASSERT_NE(refusal_of_kineto(text.substr(0, size)), "taken") << text.substr(0, size);
  }
  const std::string packed = pack(text);
  const TraceFile cut(packed.substr(0, packed.size() - 3), "cut.json.gz");
  EXPECT_THROW(read_kineto_trace(cut.path(), "layer:"), InputError);
}

// Reads the time behind `key` on this line or the next: the public trace writes two lines per
// event.
std::int64_t time_after(const std::string& text, const std::string& key, std::size_t from) {
  const std::size_t begin = text.find("\"" + key + "\": ", from) + key.size() + 4;
  const std::size_t point = text.find('.', begin);
  return std::stoll(text.substr(begin, point - begin)) * 1000 +
         std::stoll(text.substr(point + 1, 3));
}

// Counts events of some categories and keeps a checksum, to be found by plain text search.
struct Tally {
  std::int64_t events = 0;
  std::uint64_t starts = 0;
  std::int64_t durations = 0;

  void add(std::int64_t start, std::int64_t duration) {
    ++events;
    starts = starts * 31 + static_cast<std::uint64_t>(start);
    durations += duration;
  }
  friend bool operator==(const Tally&, const Tally&) = default;
};

Tally tally_text(const std::string& text, std::initializer_list<const char*> categories) {
  Tally tally;
  for (std::size_t at = text.find("\"ph\": \"X\""); at != std::string::npos;
       at = text.find("\"ph\": \"X\"", at + 1)) {
    for (const char* category : categories) {
      if (text.compare(at + 11, std::string(category).size() + 9,
                       "\"cat\": \"" + std::string(category) + "\"") == 0) {
        tally.add(time_after(text, "ts", at), time_after(text, "dur", at));
      }
    }
  }
  return tally;
}

TEST(KinetoTrace, ReadsThePublicTraceToTheNanosecond) {
  const std::filesystem::path path = public_trace();
  if (path.empty()) GTEST_SKIP() << "the public trace of a ResNet-50 is not at hand";
  const KinetoTrace trace = read_kineto_trace(path, "## ");
  const std::string text = unpack(path);
  EXPECT_EQ(trace.events, 68692);
  Tally device;
  for (const DeviceActivity& activity : trace.device) device.add(activity.start, activity.duration);
  EXPECT_EQ(device.events, 6095);
  EXPECT_TRUE(device == tally_text(text, {"kernel", "gpu_memcpy", "gpu_memset"}));
  // The two threads with operations stand one behind the other in the file.
  Tally operations;
  std::size_t launches = 0;
  std::size_t ranges = 0;
  for (const HostThread& thread : trace.threads) {
    for (const HostOperation& op : thread.operations) operations.add(op.start, op.duration);
    launches += thread.launches.size();
    ranges += thread.ranges.size();
  }
  EXPECT_EQ(operations.events, 23910);
  EXPECT_TRUE(operations == tally_text(text, {"cpu_op"}));
  EXPECT_EQ(launches, 15329U);
  EXPECT_EQ(ranges, 5U * 5U);  // a step, forward, backward, optimizer and its update, five times
}

}  // namespace
}  // namespace frazil
