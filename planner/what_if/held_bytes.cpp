#include "planner/what_if/held_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>

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

void check(const WhatIfMemory& memory, const Plan& plan, int devices) {
  check_length(memory.activation, "--activation", devices);
  check_length(memory.state, "--state", devices);
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

// The bytes that F of a micro-batch adds on a device.
class ChunkBytes {
 public:
  ChunkBytes(Bytes activation, int chunks, int devices)
      : activation_(activation), chunks_(chunks), devices_(devices) {}

  Bytes of(const Action& action) const {
    const std::int64_t chunk = action.stage.value / devices_;
    return {(up_to(chunk + 1) - up_to(chunk)) * action.micro_batches->count()};
  }

 private:
  std::int64_t up_to(std::int64_t chunk) const {
    return static_cast<std::int64_t>(Wide{activation_.count} * chunk / chunks_);
  }

  Bytes activation_;
  int chunks_;
  int devices_;
};

void count_bytes(const Action& action, const ChunkBytes& bytes, Held& held) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) count_bytes(half, bytes, held);
  } else if (action.kind == ActionKind::kForward) {
    held.now += bytes.of(action);
    held.most = std::max(held.most, held.now);
  } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
    held.now -= bytes.of(action);
  }
}

}  // namespace

std::vector<Bytes> find_peak_bytes(const WhatIfMemory& memory, const Plan& plan,
                                   const SimulatedStep& step, int devices) {
  check(memory, plan, devices);
  const auto chunks = static_cast<int>(plan.pipelines.front().stages.size()) / devices;
  std::vector<Held> held(static_cast<std::size_t>(devices));
  const TaskGraph& graph = step.lowered.graph;
  for (std::size_t task = 0; task < graph.size(); ++task) {
    const TaskLane& lane = graph.lanes()[graph.lane_of()[task]];
    if (lane.lane != Lane::kCompute) continue;
    const std::size_t device = lane.device.index();
    const ChunkBytes bytes(value_on(memory.activation, device), chunks, devices);
    count_bytes(step.lowered.actions[task], bytes, held[device]);
  }
  std::vector<Bytes> peaks;
  const auto directions = static_cast<std::int64_t>(plan.pipelines.size());
  for (std::size_t device = 0; device < held.size(); ++device) {
    peaks.push_back(value_on(memory.state, device) * directions + held[device].most);
  }
  return peaks;
}

std::optional<std::string> find_excess(const WhatIfMemory& memory,
                                       const std::vector<Bytes>& peaks) {
  const auto fullest = std::max_element(peaks.begin(), peaks.end());
  if (!memory.limit || fullest == peaks.end() || *fullest <= *memory.limit) return std::nullopt;
  return fmt::format("needs {} on device {}, limit {}", to_text(*fullest), fullest - peaks.begin(),
                     to_text(*memory.limit));
}

}  // namespace frazil
