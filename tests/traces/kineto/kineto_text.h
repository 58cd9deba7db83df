#pragma once
// Writes small traces as PyTorch's profiler does, event by event; times are in ns.

#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "profiles/json.h"
#include "profiles/text_file.h"
#include "traces/microseconds.h"

namespace frazil {

// Returns the name that the engine gives to the call of a backward node.
inline std::string engine_call(const std::string& node) {
  return "autograd::engine::evaluate_function: " + node;
}

class KinetoText {
 public:
  // Writes any complete event; `arguments` are the members of "args".
  KinetoText& event(const std::string& category, const std::string& name, const std::string& thread,
                    std::int64_t start, std::int64_t duration, const std::string& arguments = "") {
    events_ += events_.empty() ? "\n  {" : ",\n  {";
    events_ += R"("ph": "X", "cat": ")" + category + R"(", "name": )" + json_string(name) +
               R"(, "pid": 1, "tid": )" + thread + ",\n    \"ts\": " + time(start) +
               ", \"dur\": " + time(duration) + ",\n    \"args\": {" + arguments + "}\n  }";
    return *this;
  }
  KinetoText& range(const std::string& name, int thread, std::int64_t start, std::int64_t end) {
    return event("user_annotation", name, std::to_string(thread), start, end - start);
  }
  KinetoText& module(const std::string& name, int thread, std::int64_t start, std::int64_t end) {
    return event("python_function", "nn.Module: " + name, std::to_string(thread), start,
                 end - start);
  }
  KinetoText& op(const std::string& name, int thread, std::int64_t start, std::int64_t end,
                 std::int64_t sequence = -1, const std::string& more = "") {
    const std::string number = sequence < 0 ? ""
                                            : R"("Sequence number": )" + std::to_string(sequence) +
                                                  R"(, "Fwd thread id": 0, )";
    return event("cpu_op", name, std::to_string(thread), start, end - start,
                 number + more + R"("Ev Idx": 0)");
  }
  // Writes a backward node inside the engine's call, as the profiler nests them.
  KinetoText& node(const std::string& name, int thread, std::int64_t start, std::int64_t end,
                   std::int64_t sequence, int forward_thread = 1, const std::string& shapes = "") {
    const std::string number = sequence < 0 ? ""
                                            : R"("Sequence number": )" + std::to_string(sequence) +
                                                  R"(, "Fwd thread id": )" +
                                                  std::to_string(forward_thread) + ", ";
    event("cpu_op", engine_call(name), std::to_string(thread), start, end - start,
          number + R"("Ev Idx": 0)");
    return event("cpu_op", name, std::to_string(thread), start + 1, end - start - 1,
                 number + shapes + R"("Ev Idx": 1)");
  }
  KinetoText& accumulate(int thread, std::int64_t start, std::int64_t end,
                         const std::string& shapes = "") {
    return node("torch::autograd::AccumulateGrad", thread, start, end, -1, 0, shapes);
  }
  // Writes memory that is allocated (bytes above 0) or freed (below 0).
  KinetoText& memory(int thread, std::int64_t at, std::int64_t address, std::int64_t bytes,
                     int device_type = 0) {
    events_ += events_.empty() ? "\n  {" : ",\n  {";
    events_ += R"("ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, )"
               R"("tid": )" +
               std::to_string(thread) + ", \"ts\": " + time(at) +
               R"(, "args": {"Total Reserved": 0, "Bytes": )" + std::to_string(bytes) +
               R"(, "Device Id": -1, "Device Type": )" + std::to_string(device_type) +
               R"(, "Addr": )" + std::to_string(address) + "}\n  }";
    return *this;
  }
  KinetoText& launch(int thread, std::int64_t start, std::int64_t correlation) {
    return event("cuda_runtime", "cudaLaunchKernel", std::to_string(thread), start, 1,
                 R"("correlation": )" + std::to_string(correlation));
  }
  KinetoText& kernel(const std::string& name, std::int64_t start, std::int64_t duration,
                     std::int64_t correlation, std::int64_t external_id = 0) {
    return event("kernel", name, "7", start, duration,
                 R"("External id": )" + std::to_string(external_id) + R"(, "correlation": )" +
                     std::to_string(correlation) + R"(, "grid": [50, 1, 1])");
  }

  std::string text() const {
    return "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"x\"}],\n"
           "  \"traceEvents\": [" +
           events_ + "\n  ],\n  \"traceName\": \"/tmp/t.json\"\n}\n";
  }

 private:
  static std::string time(std::int64_t ns) { return to_microseconds(Duration{ns}); }

  std::string events_;
};

// A file that exists as long as the object.
class TraceFile {
 public:
  explicit TraceFile(const std::string& text, const std::string& name = "trace.json")
      : path_(std::filesystem::temp_directory_path() /
              ("frazil-" + std::to_string(getpid()) + "-" + name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TraceFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string pack(const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("frazil-" + std::to_string(getpid()) + "-pack.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::string packed = read_text_file(path);
  std::filesystem::remove(path);
  return packed;
}

inline std::string unpack(const std::filesystem::path& path) {
  std::string text;
  std::string piece(std::size_t{1} << 20, '\0');
  gzFile file = gzopen(path.c_str(), "rb");
  while (true) {
    const int count = gzread(file, piece.data(), static_cast<unsigned>(piece.size()));
    if (count <= 0) break;
    text.append(piece, 0, static_cast<std::size_t>(count));
  }
  gzclose(file);
  return text;
}

// Returns the path of a trace of a ResNet-50 by PyTorch's profiler that ships with another project,
// or an empty path if the trace is not at hand.
inline std::filesystem::path public_trace() {
  const std::filesystem::path folder =
      std::filesystem::path(FRAZIL_SOURCE_FOLDER) / ".." / "shared" / "data" / "kineto";
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() == ".gz") return entry.path();
  }
  return {};
}

}  // namespace frazil
