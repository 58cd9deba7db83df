#include "tests/bench/programs/profiler_trace.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"
#include "traces/microseconds.h"

namespace frazil {
namespace {

constexpr int kLayers = 48;
constexpr int kMicroBatches = 4;
constexpr int kForwardThread = 1102;
constexpr int kBackwardThread = 1262;
constexpr int kNodesOfLayer = 5;
constexpr std::int64_t kCall = 2'000;        // ns from one operation's start to the next one's
constexpr std::int64_t kLag = 50'000'000;    // ns that the device lags behind the host
constexpr std::int64_t kLaunchBytes = 1155;  // text of a call, a kernel and their arrows

// Operations are listed in the order in which they start; one lies inside the last one of lower
// depth.
struct Operation {
  std::string name;
  int depth = 0;
  int node = -1;          // index of the layer's backward node; -1: no number
  bool launches = false;  // launches a kernel
};

std::vector<Operation> make_forward() {
  return {{"aten::layer_norm", 0, 0}, {"aten::native_layer_norm", 1, 0, true},
          {"aten::empty", 2},         {"aten::empty", 2},
          {"aten::view", 2},          {"aten::linear", 0, 1},
          {"aten::t", 1, 1},          {"aten::transpose", 2, 1},
          {"aten::as_strided", 3},    {"aten::addmm", 1, 2, true},
          {"aten::gelu", 0, 3, true}, {"aten::add", 0, 4, true}};
}

void add_node(std::vector<Operation>& all, const std::string& name, int node) {
  all.push_back({"autograd::engine::evaluate_function: " + name, 0, node});
  all.push_back({name, 1, node});
}

std::vector<Operation> make_backward() {
  const std::string accumulate = "torch::autograd::AccumulateGrad";
  std::vector<Operation> all;
  add_node(all, "AddBackward0", 4);
  add_node(all, "GeluBackward0", 3);
  all.push_back({"aten::gelu_backward", 2, -1, true});
  add_node(all, "AddmmBackward0", 2);
  for (int product = 0; product < 2; ++product) {
    all.push_back({"aten::t", 2});
    all.push_back({"aten::transpose", 3});
    all.push_back({"aten::as_strided", 4});
    all.push_back({"aten::mm", 2, -1, true});
  }
  all.push_back({"aten::sum", 2, -1, true});
  add_node(all, accumulate, -1);
  all.push_back({"aten::add_", 2, -1, true});
  add_node(all, "TBackward0", 1);
  all.push_back({"aten::t", 2});
  all.push_back({"aten::transpose", 3});
  add_node(all, accumulate, -1);
  all.push_back({"aten::add_", 2, -1, true});
  add_node(all, "NativeLayerNormBackward0", 0);
  all.push_back({"aten::native_layer_norm_backward", 2, -1, true});
  add_node(all, accumulate, -1);
  all.push_back({"aten::add_", 2, -1, true});
  return all;
}

std::vector<Operation> make_update() {
  return {{"aten::_foreach_add_", 0, -1, true},
          {"aten::_foreach_lerp_", 0, -1, true},
          {"aten::_foreach_addcdiv_", 0, -1, true}};
}

std::int64_t count_inside(std::span<const Operation> all, std::size_t outer) {
  std::int64_t count = 0;
  for (std::size_t i = outer + 1; i < all.size() && all[i].depth > all[outer].depth; ++i) ++count;
  return count;
}

class TraceWriter {
 public:
  TraceWriter(const std::filesystem::path& path, const ProfilerTrace& shape)
      : file_(path, std::ios::binary), shape_(shape) {}

  std::int64_t write() {
    text_ = "{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n";
    for (int step = 0; bytes_to_come() < shape_.bytes; ++step) add_step(step);
    for (std::size_t i = 0; i < launches_.size(); ++i) add_call(i);
    for (std::size_t i = 0; i < launches_.size(); ++i) add_kernel(i);
    add("  {{\"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": "
        "\"\", \"ts\": {}}}\n  ],\n  \"traceName\": \"trace.json\"\n}}\n",
        time(clock_));
    flush();
    if (!file_.flush()) throw std::runtime_error("a trace of the benchmark could not be written");
    return written_;
  }

 private:
  struct Launch {
    std::int64_t start = 0;
    std::int64_t external_id = 0;
    int thread = 0;
  };

  static std::string time(std::int64_t ns) { return to_microseconds(Duration{ns}); }

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::vformat_to(std::back_inserter(text_), format, fmt::make_format_args(values...));
    if (text_.size() > (std::size_t{1} << 20)) flush();
  }

  void flush() {
    file_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    written_ += static_cast<std::int64_t>(text_.size());
    text_.clear();
  }

  std::int64_t bytes_to_come() const {
    return written_ + static_cast<std::int64_t>(text_.size()) +
           static_cast<std::int64_t>(launches_.size()) * kLaunchBytes;
  }

  void add_step(int step) {
    const auto forwards = static_cast<std::int64_t>(forward_.size()) + 1;
    const auto backwards = static_cast<std::int64_t>(backward_.size()) + 1;
    const std::int64_t passes = std::int64_t{kMicroBatches} * kLayers * (forwards + backwards);
    const std::int64_t updates = 2 + kLayers * static_cast<std::int64_t>(update_.size());
    add_range(fmt::format("ProfilerStep#{}", step), (passes + updates) * kCall);
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) add_pass();
    add_range("Optimizer.step#AdamW.step", (updates - 1) * kCall);
    for (int layer = 0; layer < kLayers; ++layer) add_operations(update_, kForwardThread, 0);
    clock_ += kCall;
  }

  void add_pass() {
    for (int layer = 0; layer < kLayers; ++layer) {
      add_range(fmt::format("layer:block{}", layer),
                static_cast<std::int64_t>(forward_.size()) * kCall + kCall / 2);
      add_operations(forward_, kForwardThread, sequence_ + layer * kNodesOfLayer);
    }
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      add_operations(backward_, kBackwardThread, sequence_ + layer * kNodesOfLayer);
      clock_ += kCall;
    }
    sequence_ += kLayers * kNodesOfLayer;
  }

  // Adds a range; the events that follow begin inside it.
  void add_range(const std::string& name, std::int64_t duration) {
    add("  {{\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"{}\", \"pid\": {}, "
        "\"tid\": {},\n    \"ts\": {}, \"dur\": {},\n    \"args\": {{\n      \"External id\": {},"
        "\"Ev Idx\": {}\n    }}\n  }},\n",
        name, kForwardThread, kForwardThread, time(clock_), time(duration), external_id_,
        external_id_);
    ++external_id_;
    clock_ += kCall;
  }

  void add_operations(std::span<const Operation> all, int thread, std::int64_t first_node) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Operation& operation = all[i];
      const std::int64_t duration = (count_inside(all, i) + 1) * kCall - 100 * operation.depth;
      add_operation(operation, thread, first_node, duration);
      if (operation.launches && shape_.has_kernels)
        launches_.push_back({clock_ + kCall / 2, external_id_, thread});
      ++external_id_;
      clock_ += kCall;
    }
  }

  void add_operation(const Operation& operation, int thread, std::int64_t first_node,
                     std::int64_t duration) {
    add("  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{}\", \"pid\": {}, \"tid\": "
        "{},\n"
        "    \"ts\": {}, \"dur\": {},\n    \"args\": {{\n      \"External id\": {},",
        operation.name, kForwardThread, thread, time(clock_), time(duration), external_id_);
    if (operation.node >= 0) {
      add("\"Sequence number\": {}, \"Fwd thread id\": {}, ", first_node + operation.node,
          thread == kBackwardThread ? 1 : 0);
    }
    if (shape_.has_shapes) {
      add("\"Input type\": [\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"], "
          "\"Input Dims\": [[768], [{}, 768], [768, 768], [], []], ",
          8 * 197);
    }
    add("\"Ev Idx\": {}\n    }}\n  }},\n", external_id_);
  }

  // Adds a call that launches a kernel, and the beginning of the arrow to the kernel.
  void add_call(std::size_t number) {
    const Launch& launch = launches_[number];
    add("  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
        "\"pid\": {}, \"tid\": {},\n    \"ts\": {}, \"dur\": 0.800,\n    \"args\": {{\n      "
        "\"External id\": {},      \"cbid\": 211, \"correlation\": {}\n    }}\n  }},\n  {{\n    "
        "\"ph\": \"s\", \"id\": {}, \"pid\": {}, \"tid\": {}, \"ts\": {},\n    \"cat\": \"ac2g\", "
        "\"name\": \"ac2g\"\n  }},\n",
        kForwardThread, launch.thread, time(launch.start), launch.external_id, number + 1,
        number + 1, kForwardThread, launch.thread, time(launch.start));
  }

  void add_kernel(std::size_t number) {
    const Launch& launch = launches_[number];
    const std::string start = time(launch.start + kLag);
    add("  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void at::native::"
        "vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<"
        "char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)\", "
        "\"pid\": 0, \"tid\": 7,\n    \"ts\": {}, \"dur\": 1.900,\n    \"args\": {{\n      "
        "\"External id\": {},      \"queued\": 0, \"device\": 0, \"context\": 1,      \"stream\": "
        "7, \"correlation\": {},      \"registers per thread\": 30,      \"shared memory\": 0,    "
        "  \"blocks per SM\": 5.300000,      \"warps per SM\": 21.200001,      \"grid\": [4, 106, "
        "1],      \"block\": [128, 1, 1],      \"est. achieved occupancy %\": 33\n    }}\n  }},\n"
        "  {{\n    \"ph\": \"f\", \"id\": {}, \"pid\": 0, \"tid\": 7, \"ts\": {},\n    \"cat\": "
        "\"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"\n  }},\n",
        start, launch.external_id, number + 1, number + 1, start);
  }

  std::ofstream file_;
  ProfilerTrace shape_;
  std::vector<Operation> forward_ = make_forward();
  std::vector<Operation> backward_ = make_backward();
  std::vector<Operation> update_ = make_update();
  std::string text_;
  std::int64_t written_ = 0;
  std::int64_t clock_ = 1'712'195'495'519'689'047;
  std::int64_t external_id_ = 1;
  std::int64_t sequence_ = 1;
  std::vector<Launch> launches_;
};

}  // namespace

std::int64_t write_profiler_trace(const std::filesystem::path& path, const ProfilerTrace& shape) {
  return TraceWriter(path, shape).write();
}

}  // namespace frazil
