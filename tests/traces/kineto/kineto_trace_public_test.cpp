// Tests a trace of PyTorch's profiler that nobody here wrote: five steps of a ResNet-50 with DDP on
// a V100, nanosecond times, no shapes, ranges around forward, backward and optimizer.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tests/traces/kineto/kineto_text.h"
#include "traces/kineto/kineto_profile.h"

namespace frazil {
namespace {

// Attributes the public trace by brute force: each piece of device work goes to the operation with
// its "External id", and with that operation to the ranges and engine calls that hold it by time.
class PublicTrace : public testing::Test {
 protected:
  void SetUp() override {
    path_ = public_trace();
    if (path_.empty()) GTEST_SKIP() << "the public trace of a ResNet-50 is not at hand";
    trace_ = read_kineto_trace(path_, "## ");
  }

  struct Interval {
    std::size_t thread = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
    bool holds(std::size_t other_thread, std::int64_t time) const {
      return thread == other_thread && start <= time && time < end;
    }
  };

  // Returns the ranges of this name, in the order of time, without the first step's.
  std::vector<Interval> ranges_of(const std::string& name) const {
    std::vector<Interval> found;
    for (std::size_t t = 0; t < trace_.threads.size(); ++t) {
      for (const HostRange& range : trace_.threads[t].ranges) {
        if (trace_.names[range.name].starts_with(name)) {
          found.push_back({t, range.start, range.end()});
        }
      }
    }
    std::sort(found.begin(), found.end(),
              [](const Interval& a, const Interval& b) { return a.start < b.start; });
    found.erase(found.begin());
    return found;
  }

  // Returns the calls of backward nodes: those of the loss, or all others.
  std::vector<Interval> engine_calls(bool of_loss) const {
    const std::vector<std::string_view> loss = {"DivBackward1", "NegBackward0", "SumBackward0",
                                                "MulBackward0", "LogSoftmaxBackward0"};
    const std::string engine = engine_call("");
    std::vector<Interval> calls;
    for (std::size_t t = 0; t < trace_.threads.size(); ++t) {
      for (const HostOperation& op : trace_.threads[t].operations) {
        const std::string& name = trace_.names[op.name];
        if (!name.starts_with(engine)) continue;
        const std::string node = name.substr(engine.size());
        const bool is_loss = std::find(loss.begin(), loss.end(), node) != loss.end();
        if (is_loss == of_loss) calls.push_back({t, op.start, op.start + op.duration});
      }
    }
    return calls;
  }

  // Returns the median over the steps of the device time whose operation `wanted` accepts.
  std::int64_t median_time(const std::function<bool(const Interval&)>& wanted) const {
    std::map<std::uint32_t, Interval> operations;
    for (std::size_t t = 0; t < trace_.threads.size(); ++t) {
      for (const HostOperation& op : trace_.threads[t].operations) {
        operations[op.external_id] = {t, op.start, op.start + op.duration};
      }
    }
    std::vector<std::int64_t> sums;
    for (const Interval& step : ranges_of("ProfilerStep#")) {
      std::int64_t sum = 0;
      for (const DeviceActivity& activity : trace_.device) {
        const Interval& op = operations.at(activity.external_id);
        if (op.start >= step.start && op.start < step.end && wanted(op)) sum += activity.duration;
      }
      sums.push_back(sum);
    }
    std::sort(sums.begin(), sums.end());
    return sums.size() % 2 == 1 ? sums[sums.size() / 2]
                                : (sums[sums.size() / 2] + sums[sums.size() / 2 - 1]) / 2;
  }

  static bool is_in(const std::vector<Interval>& intervals, const Interval& op) {
    return std::any_of(intervals.begin(), intervals.end(),
                       [&](const Interval& i) { return i.holds(op.thread, op.start); });
  }

  KinetoImport import(const std::string& prefix) const {
    KinetoOptions options;
    options.layer_prefix = prefix;
    options.micro_batch_size = 1;
    return import_kineto({path_}, options);
  }

  std::filesystem::path path_;
  KinetoTrace trace_;
};

// The loss is computed inside the range named backward.
TEST_F(PublicTrace, HasTheTimesOfItsNamedRanges) {
  const KinetoImport ranges = import("## ");
  const std::vector<std::string> names = {"## forward ##", "## backward ##", "## optimizer ##"};
  ASSERT_EQ(ranges.profile.blocks, names);
  for (const bool is_loss : {false, true}) {
    const CostSample& cost = ranges.profile.layers[is_loss ? 1 : 0].costs.front();
    const std::vector<Interval> forward = ranges_of(names[is_loss ? 1 : 0]);
    const std::vector<Interval> calls = engine_calls(is_loss);
    ASSERT_EQ(forward.size(), 4U);
    EXPECT_EQ(cost.forward.count(),
              median_time([&](const Interval& op) { return is_in(forward, op); }));
    EXPECT_EQ((cost.backward_input + cost.backward_weight).count(),
              median_time([&](const Interval& op) { return is_in(calls, op); }));
  }
  const std::vector<Interval> updates = ranges_of("Optimizer.step#");
  Duration update{0};
  for (const Layer& layer : ranges.profile.layers) update += layer.update;
  // The sum has the shares of three layers, each of which is rounded.
  EXPECT_NEAR(
      static_cast<double>(update.count()),
      static_cast<double>(median_time([&](const Interval& op) { return is_in(updates, op); })), 3);
  EXPECT_LT(1 - ranges.report.device.share(), 0.01);
}

TEST_F(PublicTrace, HasTheSameTimesWithoutRanges) {
  const KinetoImport ranges = import("## ");
  const KinetoImport operations = import("layer:");
  EXPECT_EQ(operations.report.layers_by, LayerSource::kOperations);
  // The ResNet-50 has 53 convolutions and normalisations, a linear layer and the loss.
  ASSERT_EQ(operations.profile.layers.size(), 108U);
  EXPECT_EQ(operations.profile.layers.front().name, "conv2d_0");
  EXPECT_EQ(operations.profile.layers[106].name, "linear_0");
  Duration forward{0};
  Duration backward{0};
  for (const Layer& layer : operations.profile.layers) {
    const CostSample& cost = layer.costs.front();
    forward += cost.forward;
    backward += cost.backward_input + cost.backward_weight;
  }
  const CostSample& model = ranges.profile.layers.front().costs.front();
  const Duration whole = model.backward_input + model.backward_weight;
  EXPECT_NEAR(static_cast<double>(forward.count()) / static_cast<double>(model.forward.count()), 1,
              0.05);
  EXPECT_NEAR(static_cast<double>(backward.count()) / static_cast<double>(whole.count()), 1, 0.05);
  EXPECT_LT(1 - operations.report.device.share(), 0.01);
}

}  // namespace
}  // namespace frazil
