#pragma once
// The record of an elastic run, JSONL: a header line, then one event a line, in step order. An
// event holds before its step executes. Masks are absolute. Integers in ns; unknown kinds are
// errors unless they begin with "x-" (but for x-cache those are kept out, counted). "events", the
// number of lines of the kinds below without x-cache, tells a file that was cut; without it (older
// or written by hand) the record of a run is whole when its last event is at its last step, the
// evaluation after it. "open":true in its place: the log of a run that may still write, or was
// ended.
//   {"format":"frazil.freeze_trace","version":1,"model_hash":"..","blocks":["embedding",..],
//    "steps":100,"events":6,"batch_size":32,"provenance":{"..":".."}}                 (on one line)
//   {"step":0,"kind":"mask","mask":"0001111","by":"alpha","reason":".."}
//   {"step":0,"kind":"plan","plan":"..","summary":"..","predicted_step_ns":0,
//    "extrapolated":true}                                                             (on one line)
//   {"step":0,"kind":"transition","plan_time_ns":0,"move_time_ns":0,"start_time_ns":0,
//    "moved_bytes":0,"predicted_plan_time_ns":0,"predicted_move_time_ns":0,
//    "predicted_start_time_ns":0}                                                     (on one line)
//   {"step":0,"kind":"cost","steps":10,"samples":320,"measured_ns":0}
//   {"step":0,"kind":"eval","epoch":0,"train_loss":0.5,"loss":0.5,"accuracy":0.5,
//    "validation_loss":0.5,"validation_accuracy":0.5}                                 (on one line)
//   {"step":0,"kind":"signals","signals":{"..":0.5}}
//   {"step":0,"kind":"step","loss":0.5,"samples":32,"time_ns":0}
//   {"step":1,"kind":"checkpoint","of":1,"time_ns":0}
//   {"step":0,"kind":"x-cache","event":"begun","layers":5,"samples":48,"memory_bytes":0,
//    "disk_bytes":0,"predicted_ns":0,"measured_ns":0,"note":".."}                     (on one line)
// "by" and "reason" go together and may be left out, as may the three predicted times, the two
// numbers of a validation, of which step a checkpoint is, where it is of this one, and
// "extrapolated" where it is false. Kinds "step" and "checkpoint" are those of a log that is
// written while the run lasts.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiles/units.h"
#include "traces/freeze_mask.h"

namespace frazil {

// A decision: in force from this step on, changed or not.
struct MaskEvent {
  FreezeMask mask;
  std::string by = {};  // who had the last word, "pt-paper", "minimum_interval"; empty: not told
  std::string reason = {};  // one sentence
  friend bool operator==(const MaskEvent&, const MaskEvent&) = default;
};

// The plan that executes from this step on.
struct PlanEvent {
  std::string plan;     // file of the plan, relative to the trace, or its one-line summary
  std::string summary;  // "2 stages x 1 pipeline, 1f1b, cuts 7"
  Duration predicted_step{0};
  bool extrapolated = false;  // the prediction goes beyond the measured micro-batch sizes
  friend bool operator==(const PlanEvent&, const PlanEvent&) = default;
};

// What a switch takes beside the move of bytes, in parts.
struct TransitionTimes {
  Duration plan{0};
  Duration move{0};
  Duration start{0};
  friend bool operator==(const TransitionTimes&, const TransitionTimes&) = default;
};

// The switch from one plan to the next, part by part.
struct TransitionEvent {
  Duration plan_time{0};   // asking the planner
  Duration move_time{0};   // state to its new owners
  Duration start_time{0};  // new executors
  Bytes moved;
  std::optional<TransitionTimes> predicted = std::nullopt;
  friend bool operator==(const TransitionEvent&, const TransitionEvent&) = default;
};

// What the steps of [step, step + steps) cost, measured.
struct CostEvent {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  Duration measured{0};  // sum over the steps
  friend bool operator==(const CostEvent&, const CostEvent&) = default;
};

// How a run does on samples of one part.
struct PartScore {
  double loss = 0;
  double accuracy = 0;  // 0..1
  friend bool operator==(const PartScore&, const PartScore&) = default;
};

struct EvalEvent {
  int epoch = 0;
  double train_loss = 0;
  double loss = 0;                                     // on the test part
  double accuracy = 0;                                 // 0..1
  std::optional<PartScore> validation = std::nullopt;  // on the part decisions are made by
  friend bool operator==(const EvalEvent&, const EvalEvent&) = default;
};

// Reduced signals a freeze policy read, by name.
struct SignalsEvent {
  std::map<std::string, double> signals;
  friend bool operator==(const SignalsEvent&, const SignalsEvent&) = default;
};

// This step, done.
struct StepEvent {
  double loss = 0;
  std::int64_t samples = 0;
  Duration time{0};
  friend bool operator==(const StepEvent&, const StepEvent&) = default;
};

// Durable by now: the state after `of` steps, at most this one, and the record of these. In the
// file "of" may be left out where it is this step.
struct CheckpointEvent {
  Duration time{0};
  Step of = 0;
  friend bool operator==(const CheckpointEvent&, const CheckpointEvent&) = default;
};

// What became of the cache of the frozen prefix.
enum class CacheChange {
  kDeclined,  // nothing new is kept; the note says why
  kBegun,     // filling begins; predicted: of the epoch that fills
  kFilled,    // that epoch is over; predicted and measured: its steps
  kFull,      // a sample found no room for the first time
  kLeft,      // features of a depth are gone
  kChecked,   // so many samples were compared, and had the bits of what is cached
  kRead,      // what a depth has served, told when it ends: predicted and measured: reading
};
std::string_view name_of(CacheChange change);  // "declined"

struct CacheEvent {
  CacheChange change = CacheChange::kDeclined;
  int layers = 0;  // the depth: layers [0, layers)
  std::int64_t samples = 0;
  Bytes memory;  // that their features take
  Bytes disk;
  Duration predicted{0};
  Duration measured{0};
  std::string note = {};  // one clause, or empty
  friend bool operator==(const CacheEvent&, const CacheEvent&) = default;
};

struct FreezeEvent {
  Step step = 0;
  std::variant<MaskEvent, PlanEvent, TransitionEvent, CostEvent, EvalEvent, SignalsEvent, StepEvent,
               CheckpointEvent, CacheEvent>
      what;
  friend bool operator==(const FreezeEvent&, const FreezeEvent&) = default;
};

struct FreezeTrace {
  std::string model_hash;
  std::vector<std::string> blocks;
  Step steps = 0;  // planned length of the run
  int batch_size = 0;
  bool open = false;  // a log: any number of events is whole
  std::map<std::string, std::string> provenance;
  std::vector<FreezeEvent> events;
  int skipped_extensions = 0;  // lines of other kinds "x-...", not kept

  friend bool operator==(const FreezeTrace&, const FreezeTrace&) = default;
};

// Reals have the fewest digits that read back as the same number. Throws InputError for a real that
// is not finite or text that is not UTF-8; steps out of order or a mask of another length are bugs.
std::string to_jsonl(const FreezeTrace& trace);
// Its lines one by one: the header, and an event of a trace of so many blocks.
std::string header_line(const FreezeTrace& trace);
std::string event_line(const FreezeEvent& event, std::size_t blocks);
// Throws InputError with the line: a bad header, unknown kind or key, decreasing steps, ...
FreezeTrace parse_freeze_trace(std::string_view text, const std::string& file);
FreezeTrace read_freeze_trace(const std::filesystem::path& path);
void write_freeze_trace(const FreezeTrace& trace, const std::filesystem::path& path);

}  // namespace frazil
