// clang-format off
// Measures `frazil import kineto` on traces of 200 MB: bytes of text per second of CPU time, and
// the peak of resident memory.
//   operations  host operations alone, every event kept
//   shapes      host operations with recorded sizes and types
//   kernels     host operations, and a device's work at the end of the file, far from its launches
// peak: resident peak of the process; limit: 64 MiB + 40 bytes per event; per_event: growth of the
// peak by the import, per event.
// clang-format on

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/bench/programs/profiler_trace.h"
#include "tests/bench/support/resident_memory.h"
#include "traces/kineto/kineto_profile.h"

namespace frazil {
namespace {

constexpr std::int64_t kTraceBytes = 200'000'000;
constexpr double kMiB = 1 << 20;

class TraceFile {
 public:
  explicit TraceFile(const ProfilerTrace& shape)
      : path_(std::filesystem::temp_directory_path() /
              ("frazil-bench-" + std::to_string(getpid()) + ".json")),
        bytes_(write_profiler_trace(path_, shape)) {}
  ~TraceFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::int64_t bytes_;
};

void import_trace(benchmark::State& state, const ProfilerTrace& shape) {
  const TraceFile trace(shape);
  const bool forgot = forget_peak();
  const std::int64_t before = resident_now();
  KinetoReport report;
  for ([[maybe_unused]] auto _ : state) {
    report = import_kineto({trace.path()}, {.micro_batches = 4}).report;
  }
  const std::int64_t peak = resident_peak();
  const auto events = static_cast<double>(report.events);
  state.SetBytesProcessed(state.iterations() * trace.bytes());
  state.counters["events"] = events;
  state.counters["peak_MiB"] = static_cast<double>(peak) / kMiB;
  state.counters["limit_MiB"] = 64 + 40 * events / kMiB;
  state.counters["per_event"] = static_cast<double>(peak - before) / events;
  state.SetLabel(forgot ? "" : "peaks are those since the start of the process");
  if (report.operations.share() < 0.5) state.SkipWithError("most time belongs to no layer");
}

void operations(benchmark::State& state) { import_trace(state, {.bytes = kTraceBytes}); }
void shapes(benchmark::State& state) {
  import_trace(state, {.bytes = kTraceBytes, .has_shapes = true});
}
void kernels(benchmark::State& state) {
  import_trace(state, {.bytes = kTraceBytes, .has_kernels = true});
}

// The number of iterations is fixed, so that each trace is written once.
BENCHMARK(operations)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(shapes)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK(kernels)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace frazil
