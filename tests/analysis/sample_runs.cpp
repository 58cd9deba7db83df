#include "tests/analysis/sample_runs.h"

#include <stdlib.h>

#include <stdexcept>
#include <system_error>

#include "profiles/text_file.h"
#include "tests/support/write_freeze_trace.h"
#include "traces/timeline_csv.h"

namespace frazil {

void add_event(FreezeTrace& trace, const FreezeEvent& event) { trace.events.push_back(event); }

MemoryRecord sample_memory() {
  constexpr Bytes kMiB{1 << 20};
  const auto held = [&](std::int64_t stash, int from_ms) {
    HeldMemory memory;
    memory.kinds[static_cast<std::size_t>(MemoryKind::kParameters)] = kMiB;
    memory.kinds[static_cast<std::size_t>(MemoryKind::kStash)] = kMiB * stash;
    memory.peak = kMiB * (1 + stash);
    const TimePoint from{std::chrono::milliseconds(from_ms)};
    memory.curve = {
        {TimePoint{}, kMiB}, {from, memory.peak}, {from + std::chrono::milliseconds(1), kMiB}};
    return memory;
  };
  return {.step = 21,
          .process_peak_resident = Bytes{50'000'000},
          .devices = {{.name = "first",
                       .limit = kMiB * 8,
                       .predicted = held(2, 1),
                       .measured = held(4, 2),
                       .allocator_peak = kMiB * 6}}};
}

ReportRun sample_run(const std::string& name) {
  ReportRun run;
  run.name = name;
  run.trace.model_hash = "0123456789abcdef";
  run.trace.blocks = {"embedding", "encoder", "head"};
  run.trace.steps = 40;
  run.trace.batch_size = 8;
  run.trace.provenance = {{"device", "two cores"}};
  const std::vector<std::pair<Step, std::string>> plans = {{0, "first plan"}, {20, "second plan"}};
  std::int64_t unit = 1'000'000;
  for (const auto& [first_step, summary] : plans) {
    if (first_step > 0) {
      add_event(run.trace, {first_step, MaskEvent{FreezeMask::frozen_prefix(3, BlockId{1})}});
    }
    add_event(run.trace, {first_step, PlanEvent{"plan.json", summary, Duration{10 * unit}}});
    if (first_step > 0) {
      add_event(run.trace, {first_step, TransitionEvent{Duration{3'000'000}, Duration{2'000'000},
                                                        Duration{1'000'000}, Bytes{4096}}});
    }
    ReportPhase phase{
        .first_step = first_step, .summary = summary, .predicted = {}, .measured = {}};
    phase.predicted = two_stages(unit, 0, 0);
    phase.measured.devices = 2;
    for (Step step = first_step; step < first_step + 20; step += 10) {
      add_event(run.trace, {step, CostEvent{10, 80, Duration{125 * unit}}});
      const Timeline measured = two_stages(unit + step * 1000, step, step * 100'000'000);
      phase.measured.spans.insert(phase.measured.spans.end(), measured.spans.begin(),
                                  measured.spans.end());
    }
    sort_spans(phase.measured);
    run.phases.push_back(phase);
    const int epoch = static_cast<int>(first_step / 20) + 1;
    add_event(run.trace,
              {first_step + 20, EvalEvent{epoch, 1.0 / epoch, 1.5 / epoch, 0.45 * epoch}});
    unit /= 2;
  }
  run.phases.back().memory = sample_memory();
  return run;
}

void write_run(const ReportRun& run, const std::filesystem::path& folder) {
  write_freeze_trace(run.trace, folder / "trace.jsonl");
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const auto phase_folder = folder / ("phase-" + std::to_string(i));
    write_text_file(phase_folder / "predicted.csv", to_csv(run.phases[i].predicted));
    write_text_file(phase_folder / "measured.csv",
                    to_csv(run.phases[i].measured, run.phases[i].clock_uncertainty));
    if (!run.phases[i].memory) continue;
    write_text_file(phase_folder / "memory.json", to_json(*run.phases[i].memory));
  }
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / ("frazil_" + name + "_XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace frazil
