#include "planner/what_if/held_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>

#include "planner/plan/schedule_facts.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

__extension__ using Wide = __int128;

constexpr Wide kMostBytes = Wide{1} << 62;

// Returns the value of one device.
Bytes value_on(const std::vector<Bytes>& values, std::size_t device) {
  return values.size() == 1 ? values.front() : values.at(device);
}

void check_length(const std::vector<Bytes>& values, const char* flag, int devices) {
  if (values.size() == 1 || values.size() == static_cast<std::size_t>(devices)) return;
  throw InputError("command line", 0, fmt::format("{} sizes for {}", values.size(), flag),
                   fmt::format("one, or one for each of {} devices", devices));
}

void check_inputs(const WhatIfMemory& memory, int devices) {
  if (memory.input.empty()) return;
  check_length(memory.input, "--stage-input", devices);
  for (std::size_t device = 0; device < static_cast<std::size_t>(devices); ++device) {
    const Bytes input = value_on(memory.input, device);
    const Bytes activation = value_on(memory.activation, device);
    if (input <= activation) continue;
    throw InputError(
        "command line", 0, fmt::format("--stage-input {}", to_text(input)),
        fmt::format("at most the {} of --activation, of which it is one", to_text(activation)));
  }
}

void check(const WhatIfMemory& memory, const Plan& plan, int devices) {
  check_length(memory.activation, "--activation", devices);
  check_length(memory.state, "--state", devices);
  check_inputs(memory, devices);
  const Bytes most = *std::max_element(memory.activation.begin(), memory.activation.end());
  const Bytes state = *std::max_element(memory.state.begin(), memory.state.end());
  const auto directions = static_cast<std::int64_t>(plan.pipelines.size());
  if (Wide{most.count} * plan.micro_batches() + Wide{state.count} * directions > kMostBytes) {
    throw InputError("command line", 0, "sizes that add up past 2^62 bytes", "smaller ones");
  }
}

struct Held {
  Bytes now;
  Bytes most;
};

// What the micro-batches of an action keep on a device.
class ChunkBytes {
 public:
  ChunkBytes(const WhatIfMemory& memory, const std::vector<Stage>& stages, std::size_t device,
             int devices)
      : activation_(value_on(memory.activation, device)),
        input_(memory.input.empty() ? activation_ : value_on(memory.input, device)),
        stages_(stages),
        devices_(devices) {}

  // From F on, until R where the stage recomputes.
  Bytes after_forward(const Action& action) const {
    return share_of(recomputes(action) ? input_ : activation_, action);
  }
  // Before the last part of the backward.
  Bytes before_backward(const Action& action) const { return share_of(activation_, action); }

 private:
  bool recomputes(const Action& action) const {
    return stages_.at(action.stage.index()).memory == MemoryPolicy::kRecompute;
  }
  Bytes share_of(Bytes bytes, const Action& action) const {
    const auto chunks = static_cast<std::int64_t>(stages_.size()) / devices_;
    const std::int64_t chunk = action.stage.value / devices_;
    const auto up_to = [&](std::int64_t c) {
      return static_cast<std::int64_t>(Wide{bytes.count} * c / chunks);
    };
    return {(up_to(chunk + 1) - up_to(chunk)) * action.micro_batches->count()};
  }

  Bytes activation_;
  Bytes input_;
  const std::vector<Stage>& stages_;
  int devices_;
};

void count_bytes(const Action& action, const ChunkBytes& bytes, Held& held) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) count_bytes(half, bytes, held);
  } else if (action.kind == ActionKind::kForward) {
    held.now += bytes.after_forward(action);
    held.most = std::max(held.most, held.now);
  } else if (action.kind == ActionKind::kRecompute) {
    held.now += bytes.before_backward(action);
    held.now -= bytes.after_forward(action);
    held.most = std::max(held.most, held.now);
  } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
    held.now -= bytes.before_backward(action);
  }
}

}  // namespace

std::vector<Bytes> find_peak_bytes(const WhatIfMemory& memory, const Plan& plan,
                                   const SimulatedStep& step, int devices) {
  check(memory, plan, devices);
  std::vector<Held> held(static_cast<std::size_t>(devices));
  const TaskGraph& graph = step.lowered.graph;
  for (std::size_t task = 0; task < graph.size(); ++task) {
    const TaskLane& lane = graph.lanes()[graph.lane_of()[task]];
    if (lane.lane != Lane::kCompute) continue;
    const std::size_t device = lane.device.index();
    const ChunkBytes bytes(memory, plan.pipelines.front().stages, device, devices);
    count_bytes(step.lowered.actions[task], bytes, held[device]);
  }
  std::vector<Bytes> peaks;
  const auto directions = static_cast<std::int64_t>(plan.pipelines.size());
  for (std::size_t device = 0; device < held.size(); ++device) {
    peaks.push_back(value_on(memory.state, device) * directions + held[device].most);
  }
  return peaks;
}

std::string tell_full_count(const WhatIfMemory& memory, ScheduleKind schedule) {
  if (!memory.input.empty() || !facts_of(schedule).recomputes_itself) return "";
  return fmt::format(", if stages kept what {} recomputes; --stage-input says what they keep",
                     schedule_name(schedule));
}

std::optional<std::string> find_excess(const WhatIfMemory& memory,
                                       const std::vector<Bytes>& peaks) {
  const auto fullest = std::max_element(peaks.begin(), peaks.end());
  if (!memory.limit || fullest == peaks.end() || *fullest <= *memory.limit) return std::nullopt;
  return fmt::format("needs {} on device {}, limit {}", to_text(*fullest), fullest - peaks.begin(),
                     to_text(*memory.limit));
}

}  // namespace frazil
