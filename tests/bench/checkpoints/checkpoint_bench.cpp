// Measures the parts of durability: a checkpoint of 128 MiB written until it is durable, and read
// back; a record of the journal, and one that is synced. Files are on the disk of the temporary
// folder; times are of the wall clock.

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <unistd.h>

#include "exec/checkpoint/checkpoint_folder.h"
#include "exec/checkpoint/step_journal.h"

namespace frazil {
namespace {

constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kWidth = 591;  // 32 layers x 3 tensors of 591 x 591 floats: 128 MiB

struct Kept {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("frazil-bench-" + std::to_string(::getpid()));
  FileSystem files = real_file_system();
  ModelSpec model;
  std::vector<LayerState> states;

  Kept() {
    for (std::int64_t l = 0; l < kLayers; ++l) {
      LayerSpec& layer = model.layers.emplace_back();
      layer.parameters = {
          {.name = "layer" + std::to_string(l) + ".weight", .shape = {kWidth, kWidth}}};
      const auto some = [] { return Tensors{at::randn({kWidth, kWidth})}; };
      states.push_back({some(), some(), some(), l});
    }
    make_folders(files, folder);
  }
  ~Kept() { std::filesystem::remove_all(folder); }

  CheckpointFolder open() const { return {files, folder, model, {"bench", 1}}; }
  static TrainingPosition position(Step step) {
    return {.step = step, .steps = step, .mask = FreezeMask::all_active(1)};
  }
  std::vector<const LayerState*> layers() const {
    std::vector<const LayerState*> all;
    for (const LayerState& state : states) all.push_back(&state);
    return all;
  }
};

void BM_SaveCheckpoint(benchmark::State& state) {
  const Kept kept;
  CheckpointFolder folder = kept.open();
  Step step = 0;
  for (auto _ : state) folder.save(Kept::position(++step), kept.layers());
}
BENCHMARK(BM_SaveCheckpoint)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_LoadCheckpoint(benchmark::State& state) {
  const Kept kept;
  CheckpointFolder folder = kept.open();
  folder.save(Kept::position(1), kept.layers());
  for (auto _ : state) benchmark::DoNotOptimize(folder.load());
}
BENCHMARK(BM_LoadCheckpoint)->UseRealTime()->Unit(benchmark::kMillisecond);

// The argument is the number of records in a group.
void BM_RecordStep(benchmark::State& state) {
  const Kept kept;
  StepJournal journal(kept.files, kept.folder / "steps.journal", 1,
                      {.records = static_cast<int>(state.range(0)), .time = std::chrono::hours(1)});
  for (auto _ : state) journal.append({journal.steps(), 1, 2});
}
BENCHMARK(BM_RecordStep)->Arg(1)->Arg(32)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace frazil

BENCHMARK_MAIN();
