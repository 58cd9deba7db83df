#pragma once
// Makes small time lines and runs for the tests of analysis.

#include <filesystem>
#include <string>

#include "analysis/html/html_report.h"

namespace frazil {

inline Action stage_action(std::int32_t stage, ActionKind kind, std::int32_t micro_batch,
                           Step step = 0) {
  Action action = make_action(PipelineId{}, StageId{stage}, kind, MicroBatchId{micro_batch});
  action.step = step;
  return action;
}

inline void add_span(Timeline& timeline, std::int32_t device, Lane lane, const Action& action,
                     std::int64_t start, std::int64_t end) {
  timeline.spans.push_back({.device = DeviceId{device},
                            .lane = lane,
                            .action = action,
                            .start = TimePoint(Duration{start}),
                            .end = TimePoint(Duration{end})});
}

inline Timeline one_forward(std::int64_t length, Step step) {
  Timeline timeline;
  timeline.devices = 1;
  add_span(timeline, 0, Lane::kCompute, stage_action(0, ActionKind::kForward, 0, step), 0, length);
  return timeline;
}

// Makes a time line of two stages on two devices and two micro-batches, where a forward takes
// `unit` ns and a backward twice that.
inline Timeline two_stages(std::int64_t unit, Step step, std::int64_t begin) {
  Timeline timeline;
  timeline.devices = 2;
  const auto add = [&](std::int32_t stage, ActionKind kind, std::int32_t micro_batch,
                       std::int64_t from, std::int64_t to) {
    const Lane lane = kind == ActionKind::kSendForward ? Lane::kSend : Lane::kCompute;
    add_span(timeline, stage, lane, stage_action(stage, kind, micro_batch, step),
             begin + from * unit, begin + to * unit);
  };
  for (std::int32_t i = 0; i < 2; ++i) {
    add(0, ActionKind::kForward, i, i, i + 1);
    add(0, ActionKind::kSendForward, i, i + 1, i + 2);
  }
  add(1, ActionKind::kForward, 0, 2, 3);
  add(1, ActionKind::kBackward, 0, 3, 5);
  add(1, ActionKind::kForward, 1, 5, 6);
  add(1, ActionKind::kBackward, 1, 6, 8);
  add(0, ActionKind::kBackward, 0, 5, 7);
  add(0, ActionKind::kBackward, 1, 8, 10);
  sort_spans(timeline);
  return timeline;
}

void add_event(FreezeTrace& trace, const FreezeEvent& event);

// Returns pointers into the trace, so that a test can change its events.
template <typename Event>
std::vector<Event*> events_of(FreezeTrace& trace) {
  std::vector<Event*> events;
  for (FreezeEvent& event : trace.events) {
    if (auto* what = std::get_if<Event>(&event.what)) events.push_back(what);
  }
  return events;
}

// Returns the record of step 21 of a device that holds 1 MiB of parameters, and 2 MiB of saved
// activations as predicted, 4 MiB as measured.
MemoryRecord sample_memory();

// Returns a run of 40 steps, with a plan of 10 ms a step, from step 20 on one of 5 ms a step, and
// sample_memory().
ReportRun sample_run(const std::string& name);

// Writes a run to `folder` as read_run reads it.
void write_run(const ReportRun& run, const std::filesystem::path& folder);

// A folder of its own under the system's temporary folder, removed with the object.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace frazil
