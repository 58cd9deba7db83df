#include "planner/interop/pytorch_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

// A set of action kinds.
using Kinds = unsigned;
constexpr Kinds bit(ActionKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr Kinds kF = bit(ActionKind::kForward);
constexpr Kinds kI = bit(ActionKind::kBackwardInput);
constexpr Kinds kW = bit(ActionKind::kBackwardWeight);
constexpr Kinds kB = bit(ActionKind::kBackward);

bool is_send(ActionKind kind) {
  return kind == ActionKind::kSendForward || kind == ActionKind::kSendBackward;
}

bool is_of_forward(ActionKind message) {
  return message == ActionKind::kSendForward || message == ActionKind::kReceiveForward;
}

StageId upstream(StageId stage) { return StageId{stage.value - 1}; }
StageId downstream(StageId stage) { return StageId{stage.value + 1}; }

// Returns the stage at the other end of a message.
StageId peer_of(const Action& message) {
  const bool goes_down = is_send(message.kind) == is_of_forward(message.kind);
  return goes_down ? downstream(message.stage) : upstream(message.stage);
}

class RowChecker {
 public:
  RowChecker(const Schedule& rows, PytorchDialect dialect, const RowComplaint& complain)
      : rows_(rows), has_messages_(dialect == PytorchDialect::kComputeComms), complain_(complain) {}

  PytorchShape check() {
    find_places();
    for (rank_ = 0; rank_ < rows_.devices.size(); ++rank_) {
      for (const Action& action : rows_.devices[rank_]) {
        for (const Action& part : parts_of(action)) take(part);
      }
    }
    for (const auto& [stage, rank] : rank_of_) finish(stage, rank);
    PytorchShape shape;
    shape.stages = static_cast<int>(rank_of_.size());
    shape.micro_batches = last_micro_batch_.value + 1;
    for (const auto& [stage, rank] : rank_of_) shape.rank_of_stage.emplace_back(rank);
    return shape;
  }

 private:
  using Key = std::pair<StageId, MicroBatchId>;

  void require(bool holds, const std::string& found, const std::string& expected) const {
    if (!holds) fail(rank_, found, expected);
  }

  [[noreturn]] void fail(std::size_t rank, const std::string& found,
                         const std::string& expected) const {
    complain_(rank, found, expected);
    ENSURE(false, "a complaint throws");
  }

  void find_places() {
    for (std::size_t rank = 0; rank < rows_.devices.size(); ++rank) {
      for (const Action& action : rows_.devices[rank]) {
        for (const Action& part : parts_of(action)) place(part, rank);
      }
      if (rows_.devices[rank].empty()) fail(rank, "no action", "a stage on every rank");
    }
    StageId next;
    for (const auto& [stage, rank] : rank_of_) {
      if (stage != next) {
        fail(rank, fmt::format("stage {} but no stage {}", stage.value, next.value),
             "stages counted from 0 without a gap");
      }
      ++next.value;
    }
  }

  void place(const Action& part, std::size_t rank) {
    const auto [entry, is_first] = rank_of_.emplace(part.stage, rank);
    if (entry->second != rank) {
      fail(rank, to_text(part),
           fmt::format("all of stage {} on rank {}", part.stage.value, entry->second));
    }
    if (part.micro_batches) {
      last_micro_batch_ = std::max(last_micro_batch_, part.micro_batches->last);
    }
  }

  void take(const Action& part) {
    const std::string text = to_text(part);
    if (!part.micro_batches) {
      take_whole_stage(part, text);
      return;
    }
    const Key key{part.stage, part.micro_batches->first};
    require(!has(key, part.kind), text + " again", "every action once");
    if (takes_peer(part.kind)) {
      check_message(part, key, text);
    } else {
      check_compute(part, key, text);
    }
    done_[key] |= bit(part.kind);
    if (part.kind == ActionKind::kBackward || part.kind == ActionKind::kBackwardWeight) {
      ++backwards_[part.stage];
    }
  }

  void take_whole_stage(const Action& part, const std::string& text) {
    if (part.kind != ActionKind::kReduceGradients) return;
    require(reduced_.insert(part.stage).second, text + " again", "every action once");
    require(backwards_[part.stage] - 1 == last_micro_batch_.value, text,
            fmt::format("it after the last backward of stage {}", part.stage.value));
  }

  void check_compute(const Action& part, const Key& key, const std::string& text) const {
    if (part.kind != ActionKind::kForward) require_before(key, ActionKind::kForward, text);
    if (part.kind == ActionKind::kBackwardWeight) {
      require(!has(key, ActionKind::kBackward), text + " beside a B", "B alone, or I and W");
      require_before(key, ActionKind::kBackwardInput, text);
      return;
    }
    if (part.kind != ActionKind::kForward) {
      require(!has_backward(key), text + " beside another backward", "B alone, or I and W");
    }
    require_input(key, part.kind == ActionKind::kForward, text);
  }

  void check_message(const Action& part, const Key& key, const std::string& text) const {
    const auto peer = neighbour(peer_of(part));
    require(peer && peer->second != rank_, text,
            "messages only between neighbouring stages on different ranks");
    const bool forward = is_of_forward(part.kind);
    const bool computed = forward ? has(key, ActionKind::kForward) : has_backward(key);
    const char* action = forward ? "F" : "backward";
    if (is_send(part.kind)) {
      require(computed, text, fmt::format("the {} that makes it before it", action));
    } else {
      require(!computed, text, fmt::format("it before the {} that needs it", action));
    }
  }

  // Requires that the input of F or of the backward is there: computed before if it comes from the
  // same rank, received before if it comes from another rank.
  void require_input(const Key& key, bool forward, const std::string& text) const {
    const auto source = neighbour(forward ? upstream(key.first) : downstream(key.first));
    if (!source) return;
    const auto [stage, rank] = *source;
    if (rank == rank_) {
      const Key made{stage, key.second};
      require(forward ? has(made, ActionKind::kForward) : has_backward(made), text,
              fmt::format("the {} of stage {} before it, on the same rank",
                          forward ? "F" : "backward", stage.value));
    } else if (has_messages_) {
      require_before(key, forward ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward,
                     text);
    }
  }

  void require_before(const Key& key, ActionKind kind, const std::string& text) const {
    require(has(key, kind), text,
            to_text(make_action(PipelineId{}, key.first, kind, key.second)) + " before it");
  }

  // Requires that a stage has every F, every backward and every SEND.
  void finish(StageId stage, std::size_t rank) const {
    for (MicroBatchId m; m <= last_micro_batch_; ++m.value) {
      const auto entry = done_.find({stage, m});
      const Kinds done = entry == done_.end() ? 0 : entry->second;
      const auto need = [&](Kinds any_of, ActionKind kind, const char* expected) {
        if ((done & any_of) != 0) return;
        fail(rank, "no " + to_text(make_action(PipelineId{}, stage, kind, m)), expected);
      };
      constexpr const char* kThrough = "every micro-batch forward and backward through every stage";
      need(kF, ActionKind::kForward, kThrough);
      need(kB | kI, ActionKind::kBackward, kThrough);
      need(kB | kW, ActionKind::kBackwardWeight, kThrough);
      for (const ActionKind kind : {ActionKind::kSendForward, ActionKind::kSendBackward}) {
        const bool forward = kind == ActionKind::kSendForward;
        const auto reader = neighbour(forward ? downstream(stage) : upstream(stage));
        if (!has_messages_ || !reader || reader->second == rank) continue;
        need(bit(kind), kind, "a SEND of all that another rank needs");
      }
    }
  }

  // Returns the stage with its rank; none beyond the first and the last stage.
  std::optional<std::pair<StageId, std::size_t>> neighbour(StageId stage) const {
    const auto entry = rank_of_.find(stage);
    if (entry == rank_of_.end()) return std::nullopt;
    return *entry;
  }

  bool has(const Key& key, ActionKind kind) const {
    const auto entry = done_.find(key);
    return entry != done_.end() && (entry->second & bit(kind)) != 0;
  }

  bool has_backward(const Key& key) const {
    return has(key, ActionKind::kBackward) || has(key, ActionKind::kBackwardInput);
  }

  const Schedule& rows_;
  bool has_messages_;
  const RowComplaint& complain_;
  std::size_t rank_ = 0;
  std::map<StageId, std::size_t> rank_of_;
  MicroBatchId last_micro_batch_;
  std::map<Key, Kinds> done_;
  std::map<StageId, int> backwards_;
  std::set<StageId> reduced_;
};

}  // namespace

std::span<const Action> parts_of(const Action& action) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) return pair->halves;
  return {&action, 1};
}

PytorchShape check_pytorch_rows(const Schedule& rows, PytorchDialect dialect,
                                const RowComplaint& complain) {
  return RowChecker(rows, dialect, complain).check();
}

void check_message_pairs(const Schedule& rows, const PytorchShape& shape,
                         const RowComplaint& complain) {
  using Pair = std::pair<std::size_t, std::size_t>;  // sender, receiver
  std::map<Pair, std::vector<Action>> sent;          // each SEND as the RECV that it needs
  std::map<Pair, std::vector<Action>> received;
  for (std::size_t rank = 0; rank < rows.devices.size(); ++rank) {
    for (const Action& action : rows.devices[rank]) {
      if (!takes_peer(action.kind)) continue;
      const StageId peer = peer_of(action);
      const std::size_t other = shape.rank_of_stage.at(peer.index()).index();
      if (!is_send(action.kind)) {
        received[{other, rank}].push_back(action);
        continue;
      }
      const ActionKind receive =
          is_of_forward(action.kind) ? ActionKind::kReceiveForward : ActionKind::kReceiveBackward;
      sent[{rank, other}].push_back(
          make_action(PipelineId{}, peer, receive, action.micro_batches->first));
    }
  }
  for (const auto& [pair, list] : received) {
    const std::vector<Action>& expected = sent[pair];
    const auto [found, there] =
        std::mismatch(list.begin(), list.end(), expected.begin(), expected.end());
    if (found == list.end()) continue;
    ENSURE(there != expected.end(), "as many SENDs as RECVs");
    complain(pair.second, to_text(*found),
             fmt::format("{} first, as rank {} sends it", to_text(*there), pair.first));
  }
}

}  // namespace frazil
