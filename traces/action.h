#pragma once
// clang-format off
// An action is one thing that a device does for a pipeline stage; it has exactly one text form. A
// schedule is lists of actions, a time line is actions with times; simulator and executor speak of
// nothing else.
//
// Grammar (round trip exact; `step` is a column of files, not text):
//   action  := [pipeline ":"] body            the prefix is dropped for pipeline 0
//   body    := stage kind micro [">" peer]    2F0 2I0 2W0-3 2B0 2R0 2F0.1 2SEND_F0 2SEND_F0>5
//            | stage whole                    2U 2REDUCE_GRAD 2UNSHARD 2RESHARD
//            | "(" half ";" half ")OVERLAP_F_B"      an F, then a B or an I
//            | "BARRIER"
//            | stage "MOVE(" cell ["[" layers "]"] [micro] ["@" version] " " place ">" place ")"
//   half    := body, with its own prefix only when the halves belong to different pipelines
//              (DualPipe): 1:(2F1;2B0)OVERLAP_F_B but (2F1;1:2B0)OVERLAP_F_B
//   peer    := stage ["." slice]                     2SEND_F0.1>3.0
//   micro   := first ["-" last] ["." slice]          last > first; one micro-batch has no "-"
//   layers  := first ["-" last]                      last > first; one layer has no "-"
//   place   := "d" device | "host" | "disk"
//   cell    := parameters | gradients | optimizer | activation | stash | kv | features | input
// The kinds F I W B R SEND_F RECV_F SEND_B RECV_B have a micro-batch; the last four of these take a
// peer. A slice before ">" belongs to the action's own end of a message, one after ">" to the end
// of its peer. Numbers are decimal, without sign or leading zeros, below 2^31. An action has one
// text: no spaces but the one in MOVE, no second way to write it. B always is I (dgrad) and W
// (wgrad) fused; R recomputes a forward (activation checkpointing).
// clang-format on

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "profiles/units.h"
#include "traces/cell_move.h"

namespace frazil {

enum class ActionKind : std::uint8_t {
  kForward,          // F
  kBackwardInput,    // I: gradients of activations (dgrad)
  kBackwardWeight,   // W: gradients of parameters (wgrad)
  kBackward,         // B: I and W fused
  kRecompute,        // R
  kUpdate,           // U
  kSendForward,      // SEND_F
  kReceiveForward,   // RECV_F
  kSendBackward,     // SEND_B
  kReceiveBackward,  // RECV_B
  kReduceGradients,  // REDUCE_GRAD
  kUnshard,          // UNSHARD
  kReshard,          // RESHARD
  kPair,             // OVERLAP_F_B
  kBarrier,          // BARRIER
  kMove,             // MOVE
};
inline constexpr int kActionKinds = 16;

// A closed interval of global micro-batches.
struct MicroBatches {
  MicroBatchId first;
  MicroBatchId last;

  int count() const { return last.value - first.value + 1; }
  friend auto operator<=>(const MicroBatches&, const MicroBatches&) = default;
};

struct Action;

// The two halves of an overlapped pair: an F, then a B or an I.
struct ActionPair {
  std::vector<Action> halves;
  friend bool operator==(const ActionPair&, const ActionPair&);
};

struct Action {
  PipelineId pipeline;  // a pair has the pipeline of its F
  StageId stage;        // 0 for BARRIER and for a pair, whose halves have their own
  ActionKind kind = ActionKind::kForward;
  std::optional<MicroBatches> micro_batches;
  std::optional<std::int32_t> slice;
  // The stage at the other end of a SEND or RECV; told when it is no neighbour or is sliced.
  std::optional<StageId> peer;
  std::optional<std::int32_t> peer_slice;
  Step step = 0;
  std::variant<std::monostate, ActionPair, CellMove> detail;

  friend bool operator==(const Action&, const Action&) = default;
};

// Makes an action of one micro-batch, the common case.
Action make_action(PipelineId pipeline, StageId stage, ActionKind kind, MicroBatchId micro_batch);
// Makes an action of a whole stage: U, REDUCE_GRAD, UNSHARD or RESHARD.
Action make_stage_action(PipelineId pipeline, StageId stage, ActionKind kind);
// Makes a pair; both halves get the step of `forward`.
Action make_pair_action(const Action& forward, const Action& backward);
// Sets the step of an action, and of both halves of a pair.
void set_step(Action& action, Step step);

// Returns the rule of the grammar that `action` breaks ("a micro-batch after the kind"), or an
// empty text if it keeps all rules.
std::string_view broken_rule(const Action& action);
// Writes the text of `action`. Throws std::logic_error for an action outside the grammar (an F
// without a micro-batch, ...): that is a bug.
std::string to_text(const Action& action);
void append_text(std::string& text, const Action& action);
std::string_view kind_name(ActionKind kind);  // "F", "SEND_F", ...
bool has_micro_batch(ActionKind kind);
bool takes_peer(ActionKind kind);
bool is_compute(ActionKind kind);  // F I W B R U and a pair: they keep a device busy

// Reads one action. Throws InputError{file, line} that names the text and the grammar rule it
// breaks.
Action parse_action(std::string_view text, const std::string& file = "action", int line = 0);

}  // namespace frazil
