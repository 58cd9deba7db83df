#pragma once
// Reads a trace of PyTorch's profiler (Kineto): Chrome trace JSON, plain or gzip. The file is read
// as a stream; of each event only what an attribution of time needs is kept, in compact records,
// times in ns. Categories and arguments are those that PyTorch 1.8 to 2.x write: `cpu_op`
// (`Operator` in old versions) with "Sequence number", "Fwd thread id" and "External id";
// `user_annotation`; `python_function`; `*_runtime` and `*_driver` calls with "correlation";
// `kernel`, `gpu_memcpy`, `gpu_memset`; the instants `[memory]` with "Addr", "Bytes" and
// "Device Type".

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace frazil {

class JsonStream;

// An operation on a host thread.
struct HostOperation {
  std::int64_t start = 0;
  std::int64_t duration = 0;
  std::int64_t sequence = -1;  // autograd's number of the node; -1: none
  std::uint32_t external_id = 0;
  std::uint32_t name = 0;  // into KinetoTrace::names
  // The thread that ran the forward of a backward node, in the profiler's count; 0: a forward.
  std::uint32_t forward_thread = 0;
};

// What a time between two marks on a host thread stands for.
enum class RangeKind : std::uint8_t {
  kStep,    // ProfilerStep#N
  kLayer,   // named by the user
  kUpdate,  // Optimizer.step#X.step
  kModule,  // nn.Module: X_0
};

struct HostRange {
  std::int64_t start = 0;
  std::int64_t duration = 0;
  std::uint32_t name = 0;
  RangeKind kind = RangeKind::kLayer;

  std::int64_t end() const { return start + duration; }
};

// A call that may start work on a device.
struct Launch {
  std::int64_t start = 0;
  std::int64_t correlation = 0;
};

// The bytes of the tensors that a backward node was handed, if the profiler recorded shapes.
struct NodeInput {
  std::int64_t start = 0;
  std::int64_t bytes = 0;
};

// The rows of the tensor that an operation with parameters reads, if the profiler recorded shapes:
// the first dimension of its data, which is the number of samples where the batch comes first.
struct RowsRead {
  std::int64_t start = 0;
  std::int64_t rows = 0;
};

// Memory that the profiler saw allocated (bytes above 0) or freed (below 0).
struct TracedMemory {
  std::int64_t time = 0;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::uint32_t thread = 0;  // into KinetoTrace::threads
  bool is_on_device = false;
};

// The events of one host thread in the order of the file, which need not be the order of time.
struct HostThread {
  std::deque<HostOperation> operations;
  std::deque<Launch> launches;
  std::vector<HostRange> ranges;
  std::deque<NodeInput> node_inputs;
  std::vector<RowsRead> rows_read;
};

// A kernel, copy or fill.
struct DeviceActivity {
  std::int64_t start = 0;
  std::int64_t duration = 0;
  std::int64_t correlation = 0;  // correlation of its launch; 0: none
  std::uint32_t external_id = 0;
  bool is_communication = false;
};

// Numbers names; each name is kept once.
class NameTable {
 public:
  std::uint32_t number_of(std::string_view name);
  const std::string& operator[](std::uint32_t number) const { return *names_[number]; }
  std::size_t size() const { return names_.size(); }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): std's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<const std::string*> names_;
};

struct KinetoTrace {
  std::string file;
  NameTable names;
  std::vector<HostThread> threads;  // ordered by first event
  std::deque<DeviceActivity> device;
  std::deque<TracedMemory> memory;
  std::int64_t events = 0;        // number of events in the file, kept or not
  std::vector<std::string> gpus;  // names of the devices that the profiler saw, in its order
};

// Reads a trace. A range is a layer's when its name begins with `layer_prefix`. Throws InputError
// with the line: no or broken JSON, a cut gzip file, no "traceEvents", an event without its times,
// a negative or impossible duration, ...
KinetoTrace read_kineto_trace(const std::filesystem::path& path, std::string_view layer_prefix);
KinetoTrace read_kineto_trace(JsonStream& stream, std::string_view layer_prefix);

}  // namespace frazil
