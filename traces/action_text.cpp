#include "traces/action.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::array<std::string_view, 8> kCellNames = {
    "parameters", "gradients", "optimizer", "activation", "stash", "kv", "features", "input"};
constexpr std::string_view kPairEnd = ")OVERLAP_F_B";
constexpr std::size_t kLongestAction = 80;

void append_number(std::string& text, std::int32_t number) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

void append_interval(std::string& text, std::int32_t first, std::int32_t last) {
  append_number(text, first);
  if (last == first) return;
  text += '-';
  append_number(text, last);
}

void append_prefix(std::string& text, PipelineId pipeline) {
  if (pipeline == PipelineId{}) return;
  append_number(text, pipeline.value);
  text += ':';
}

void append_micro(std::string& text, const Action& action) {
  if (!action.micro_batches) return;
  append_interval(text, action.micro_batches->first.value, action.micro_batches->last.value);
  if (!action.slice) return;
  text += '.';
  append_number(text, *action.slice);
}

void append_place(std::string& text, const Place& place) {
  switch (place.kind) {
    case Place::Kind::kDevice:
      text += 'd';
      append_number(text, place.device.value);
      return;
    case Place::Kind::kHost:
      text += "host";
      return;
    case Place::Kind::kDisk:
      text += "disk";
      return;
  }
}

void append_move(std::string& text, const Action& action, const CellMove& move) {
  text += '(';
  text += kCellNames.at(static_cast<std::size_t>(move.cell));
  if (move.layers) {
    text += '[';
    append_interval(text, move.layers->first.value, move.layers->second.value);
    text += ']';
  }
  append_micro(text, action);
  if (move.version) {
    text += '@';
    append_number(text, *move.version);
  }
  text += ' ';
  append_place(text, move.from);
  text += '>';
  append_place(text, move.to);
  text += ')';
}

// Appends an action without its prefix. Requires an action that is known to keep the rules and is
// no pair.
void append_body(std::string& text, const Action& action) {
  if (action.kind != ActionKind::kBarrier) append_number(text, action.stage.value);
  text += kind_name(action.kind);
  if (const auto* move = std::get_if<CellMove>(&action.detail)) {
    append_move(text, action, *move);
    return;
  }
  append_micro(text, action);
  if (!action.peer) return;
  text += '>';
  append_number(text, action.peer->value);
  if (!action.peer_slice) return;
  text += '.';
  append_number(text, *action.peer_slice);
}

void append_pair(std::string& text, const Action& forward, const Action& backward) {
  const bool mixed = forward.pipeline != backward.pipeline;
  if (!mixed) append_prefix(text, forward.pipeline);
  text += '(';
  if (mixed) append_prefix(text, forward.pipeline);
  append_body(text, forward);
  text += ';';
  if (mixed) append_prefix(text, backward.pipeline);
  append_body(text, backward);
  text += kPairEnd;
}

// Reads one action from the front of the text to its end.
class ActionReader {
 public:
  ActionReader(std::string_view text, const std::string& file, int line)
      : text_(text), file_(file), line_(line) {}

  Action read() {
    const std::optional<PipelineId> prefix = read_prefix();
    Action action = take("(") ? read_pair(prefix) : read_body(prefix);
    if (position_ != text_.size()) fail("the end of the action");
    return action;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    const bool is_long = text_.size() > kLongestAction;
    const std::string found =
        fmt::format("action \"{}{}\"", text_.substr(0, kLongestAction), is_long ? "..." : "");
    throw InputError(file_, line_, found,
                     fmt::format("{} at character {}", expected, position_ + 1));
  }

  bool take(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    if (!take(word)) fail(fmt::format("\"{}\"", word));
  }

  // Reads the run of characters for which `belongs` holds.
  template <class Belongs>
  std::string_view take_run(Belongs belongs) {
    const std::size_t begin = position_;
    while (position_ < text_.size() && belongs(text_[position_])) ++position_;
    return text_.substr(begin, position_ - begin);
  }

  std::int32_t number() {
    const std::size_t begin = position_;
    const std::string_view digits = take_run([](char c) { return c >= '0' && c <= '9'; });
    std::int32_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool leading_zero = digits.size() > 1 && digits.front() == '0';
    if (digits.empty() || leading_zero || result.ec != std::errc{}) {
      position_ = begin;
      fail("a number below 2147483648 without leading zeros");
    }
    return value;
  }

  std::optional<PipelineId> read_prefix() {
    const std::size_t colon = text_.find_first_not_of("0123456789", position_);
    if (colon == std::string_view::npos || text_[colon] != ':') return std::nullopt;
    const PipelineId pipeline{number()};
    if (pipeline == PipelineId{}) fail("no prefix for pipeline 0");
    expect(":");
    return pipeline;
  }

  // Reads a closed interval; one element is written without "-".
  std::pair<std::int32_t, std::int32_t> read_interval() {
    const std::int32_t first = number();
    if (!take("-")) return {first, first};
    const std::int32_t last = number();
    if (last <= first) fail("a last number after the first, or the first alone");
    return {first, last};
  }

  void read_micro(Action& action) {
    const auto [first, last] = read_interval();
    action.micro_batches = MicroBatches{MicroBatchId{first}, MicroBatchId{last}};
    if (take(".")) action.slice = number();
  }

  Place read_place() {
    if (take("host")) return {Place::Kind::kHost, DeviceId{}};
    if (take("disk")) return {Place::Kind::kDisk, DeviceId{}};
    if (!take("d")) fail("a place: d and a device, host or disk");
    return {Place::Kind::kDevice, DeviceId{number()}};
  }

  void read_move(Action& action) {
    CellMove move;
    expect("(");
    const std::string_view cell = take_run([](char c) { return c >= 'a' && c <= 'z'; });
    const auto* const found = std::find(kCellNames.begin(), kCellNames.end(), cell);
    if (found == kCellNames.end()) fail(fmt::format("a cell ({})", fmt::join(kCellNames, ", ")));
    move.cell = static_cast<CellKind>(found - kCellNames.begin());
    if (take("[")) {
      const auto [first, last] = read_interval();
      move.layers = {LayerId{first}, LayerId{last}};
      expect("]");
    }
    const char next = position_ < text_.size() ? text_[position_] : ' ';
    if (next != '@' && next != ' ') read_micro(action);
    if (take("@")) move.version = number();
    expect(" ");
    move.from = read_place();
    expect(">");
    move.to = read_place();
    expect(")");
    action.detail = move;
  }

  ActionKind read_kind() {
    const std::size_t begin = position_;
    const std::string_view word =
        take_run([](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    auto kind = ActionKind::kForward;
    int index = 0;
    while (index < kActionKinds && kind_name(kind) != word) {
      kind = static_cast<ActionKind>(++index);
    }
    if (index == kActionKinds || kind == ActionKind::kPair || kind == ActionKind::kBarrier) {
      position_ = begin;
      fail(
          "a kind after the stage (F, I, W, B, R, U, SEND_F, RECV_F, SEND_B, RECV_B, REDUCE_GRAD, "
          "UNSHARD, RESHARD, MOVE; B is I and W fused)");
    }
    return kind;
  }

  Action read_body(std::optional<PipelineId> pipeline) {
    Action action;
    action.pipeline = pipeline.value_or(PipelineId{});
    if (take("BARRIER")) {
      action.kind = ActionKind::kBarrier;
      return action;
    }
    action.stage = StageId{number()};
    action.kind = read_kind();
    if (action.kind == ActionKind::kMove) read_move(action);
    if (has_micro_batch(action.kind)) read_micro(action);
    if (takes_peer(action.kind) && take(">")) {
      action.peer = StageId{number()};
      if (take(".")) action.peer_slice = number();
    }
    if (const auto rule = broken_rule(action); !rule.empty()) fail(rule);
    return action;
  }

  Action read_pair(std::optional<PipelineId> outer) {
    const std::optional<PipelineId> first = read_prefix();
    Action forward = read_body(first ? first : outer);
    expect(";");
    const std::optional<PipelineId> second = read_prefix();
    Action backward = read_body(second ? second : outer);
    expect(kPairEnd);
    if ((first || second) && (outer || forward.pipeline == backward.pipeline)) {
      fail("one pipeline before the pair, or two different ones inside,");
    }
    Action action;
    action.kind = ActionKind::kPair;
    action.pipeline = forward.pipeline;
    action.detail = ActionPair{{std::move(forward), std::move(backward)}};
    if (const auto rule = broken_rule(action); !rule.empty()) fail(rule);
    return action;
  }

  std::string_view text_;
  const std::string& file_;
  int line_;
  std::size_t position_ = 0;
};

}  // namespace

std::string to_text(const Action& action) {
  std::string text;
  append_text(text, action);
  return text;
}

void append_text(std::string& text, const Action& action) {
  const std::string_view rule = broken_rule(action);
  ENSURE(rule.empty(), fmt::format("an action needs {}", rule));
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    append_pair(text, pair->halves[0], pair->halves[1]);
    return;
  }
  append_prefix(text, action.pipeline);
  append_body(text, action);
}

Action parse_action(std::string_view text, const std::string& file, int line) {
  return ActionReader(text, file, line).read();
}

}  // namespace frazil
