#pragma once
// clang-format off
// The record of an elastic run, JSONL: a header line, then one event a line, in step order. An
// event is in force before its step executes. A mask tells the state of every block, not a
// difference. Times are integers in ns. An event of an unknown kind is an error unless its kind
// begins with "x-": such a line is left out and counted. "events" in the header is the number of
// lines of the kinds below without those that begin with x-; a file with another number was cut. A file without it
// (older, or written by hand) is whole when its last event is at step "steps", the evaluation after
// the last step. "open":true in place of "events" marks a log whose run still writes or was ended;
// any number of its events is whole.
//   {"format":"frazil.freeze_trace","version":1,"model_hash":"..","blocks":["embedding",..],
//    "steps":100,"events":6,"batch_size":32,"provenance":{"..":".."}}                 (on one line)
//   {"step":0,"kind":"mask","mask":"0001111","by":"alpha","reason":".."}
//   {"step":0,"kind":"plan","plan":"..","summary":"..","predicted_step_ns":0,
//    "extrapolated":true,"batch_size":64}                                             (on one line)
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
//   {"step":0,"kind":"x-members","event":"lost","devices":3,"note":".."}
//   {"step":0,"kind":"x-members","event":"recovered","devices":3,"note":"","plan_ready":true,
//    "detection_ns":0,"plan_ns":0,"transfer_ns":0,"first_step_ns":0}                  (on one line)
//   x-drift and x-devices: traces/drift_event.h
// "by" and "reason" go together and may be left out; so may the three predicted times, the two
// validation numbers, "of" if the checkpoint is of its event's own step, "extrapolated" if it is
// false, and a plan's "batch_size" if it is that of the header. The kinds "step" and "checkpoint"
// stand only in a log, which is written while the run lasts.
// clang-format on

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiles/units.h"
#include "traces/drift_event.h"
#include "traces/freeze_mask.h"

namespace frazil {

// A decision of the freeze policy, in force from this step on; the mask may be the one before.
struct MaskEvent {
  FreezeMask mask;
  // The rule that decided last ("pt-paper", "minimum_interval"); empty: not told.
  std::string by = {};
  std::string reason = {};  // one sentence
  friend bool operator==(const MaskEvent&, const MaskEvent&) = default;
};

// The plan that executes from this step on.
struct PlanEvent {
  std::string plan;     // file of the plan, relative to the trace, or its one-line summary
  std::string summary;  // "2 stages x 1 pipeline, 1f1b, cuts 7"
  Duration predicted_step{0};
  bool extrapolated = false;  // the prediction goes beyond the measured micro-batch sizes
  int batch_size = 0;         // samples of a whole step; 0: that of the trace
  friend bool operator==(const PlanEvent&, const PlanEvent&) = default;
};

// The predicted time of a transition, part by part.
struct TransitionTimes {
  Duration plan{0};
  Duration move{0};
  Duration start{0};
  friend bool operator==(const TransitionTimes&, const TransitionTimes&) = default;
};

// The transition from one plan to the next, part by part.
struct TransitionEvent {
  Duration plan_time{0};   // asking the planner
  Duration move_time{0};   // state to its new owners
  Duration start_time{0};  // new executors
  Bytes moved;
  std::optional<TransitionTimes> predicted = std::nullopt;
  friend bool operator==(const TransitionEvent&, const TransitionEvent&) = default;
};

// The measured cost of the steps [step, step + steps).
struct CostEvent {
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  Duration measured{0};  // sum over the steps
  friend bool operator==(const CostEvent&, const CostEvent&) = default;
};

// Loss and accuracy on the samples of one part of the data.
struct PartScore {
  double loss = 0;
  std::optional<double> accuracy = std::nullopt;  // 0..1; none of a model that does not classify
  friend bool operator==(const PartScore&, const PartScore&) = default;
};

struct EvalEvent {
  int epoch = 0;
  double train_loss = 0;
  double loss = 0;                                     // on the test part
  std::optional<double> accuracy = std::nullopt;       // as in PartScore
  std::optional<PartScore> validation = std::nullopt;  // on the part that decisions use
  friend bool operator==(const EvalEvent&, const EvalEvent&) = default;
};

// The reduced signals that a freeze policy read, by name.
struct SignalsEvent {
  std::map<std::string, double> signals;
  friend bool operator==(const SignalsEvent&, const SignalsEvent&) = default;
};

// The result of this step.
struct StepEvent {
  double loss = 0;
  std::int64_t samples = 0;
  Duration time{0};
  friend bool operator==(const StepEvent&, const StepEvent&) = default;
};

// Tells that the state after `of` steps (at most this step) and the record of those steps are
// durable. The file may leave out "of" if it is this step.
struct CheckpointEvent {
  Duration time{0};
  Step of = 0;
  friend bool operator==(const CheckpointEvent&, const CheckpointEvent&) = default;
};

// Events of the cache of the frozen prefix.
enum class CacheChange {
  kDeclined,  // nothing new is kept; the note says why
  kBegun,     // filling begins; predicted: time of the epoch that fills
  kFilled,    // the epoch that fills is over; predicted and measured: its steps
  kFull,      // a sample found no room for the first time
  kLeft,      // the features of a depth were dropped
  kChecked,   // `samples` samples were compared and had the cached bits
  kRead,      // a depth ends; predicted and measured: time it spent reading
};
std::string_view name_of(CacheChange change);  // "declined"

struct CacheEvent {
  CacheChange change = CacheChange::kDeclined;
  int layers = 0;  // the depth: layers [0, layers)
  std::int64_t samples = 0;
  Bytes memory;  // bytes of their features in memory
  Bytes disk;
  Duration predicted{0};
  Duration measured{0};
  std::string note = {};  // one clause, or empty
  friend bool operator==(const CacheEvent&, const CacheEvent&) = default;
};

// Events of the processes of a run.
enum class MembersChange {
  kLost,       // one is lost; the note tells which, and why
  kRecovered,  // the first step after a loss is committed
  kCame,       // one has come, or has not been taken in; the note tells which
  kSuspected,  // one has not been heard of for long
  kHeard,      // and is heard of again
};
std::string_view name_of(MembersChange change);  // "lost"

// How long it took to go on after a loss.
struct RecoveryTimes {
  bool plan_ready = false;  // the plan had been made ahead
  Duration detection{0};    // from the last word of the lost process to its loss being known
  Duration plan{0};         // asking the planner
  Duration transfer{0};     // state to its new owners, and new executors
  Duration first_step{0};   // from the loss being known to the first committed step
  friend bool operator==(const RecoveryTimes&, const RecoveryTimes&) = default;
};

struct MembersEvent {
  MembersChange change = MembersChange::kLost;
  int devices = 0;  // that are there then
  std::string note = {};
  std::optional<RecoveryTimes> times = std::nullopt;  // of kRecovered alone
  friend bool operator==(const MembersEvent&, const MembersEvent&) = default;
};

struct FreezeEvent {
  Step step = 0;
  std::variant<MaskEvent, PlanEvent, TransitionEvent, CostEvent, EvalEvent, SignalsEvent, StepEvent,
               CheckpointEvent, CacheEvent, MembersEvent, DriftEvent, DevicesEvent>
      what;
  friend bool operator==(const FreezeEvent&, const FreezeEvent&) = default;
};

struct FreezeTrace {
  std::string model_hash;
  std::vector<std::string> blocks;
  Step steps = 0;  // planned number of steps
  int batch_size = 0;
  bool open = false;  // a log; any number of events is whole
  std::map<std::string, std::string> provenance;
  std::vector<FreezeEvent> events;
  int skipped_extensions = 0;  // lines of other kinds "x-...", not kept

  friend bool operator==(const FreezeTrace&, const FreezeTrace&) = default;
};

// Writes the whole file. Reals have the fewest digits that read back as the same number. Throws
// InputError for a real that is not finite or text that is not UTF-8; steps out of order or a mask
// of another length are bugs (std::logic_error).
std::string to_jsonl(const FreezeTrace& trace);
// Write one line of the file: its header, or an event of a trace with `blocks` blocks.
std::string header_line(const FreezeTrace& trace);
std::string event_line(const FreezeEvent& event, std::size_t blocks);
// Reads a whole file. Throws InputError with the line: a bad header, unknown kind or key,
// decreasing steps, ...
FreezeTrace parse_freeze_trace(std::string_view text, const std::string& file);
FreezeTrace read_freeze_trace(const std::filesystem::path& path);

}  // namespace frazil
