#include "sim/memory.h"

#include <algorithm>
#include <tuple>

#include "profiles/error.h"

namespace frazil {
namespace {

using Amounts = std::array<std::int64_t, kMemoryKinds>;

// A change at a moment. Changes with equal keys happen together; keys sort as memory.h says.
struct MemoryEvent {
  std::int64_t time = 0;
  std::uint32_t position = 0;  // 0: an end of a task that took time; else 1 + sweep position
  MemoryChange::When when = MemoryChange::When::kStart;
  MemoryKind kind = MemoryKind::kStash;
  std::int64_t delta = 0;

  auto key() const { return std::tuple(time, position, when); }
};

bool happens_before(const MemoryEvent& a, const MemoryEvent& b) { return a.key() < b.key(); }

std::vector<std::vector<MemoryEvent>> events_by_device(const TaskGraph& graph,
                                                       const CompiledGraph& compiled,
                                                       const SweepTimes& times,
                                                       std::span<const Duration> prices,
                                                       std::size_t devices) {
  std::vector<std::uint32_t> position_of(graph.size());
  for (std::size_t i = 0; i < compiled.task_at.size(); ++i) {
    position_of[compiled.task_at[i]] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::vector<MemoryEvent>> events(devices);
  for (const MemoryChange& change : graph.memory_changes()) {
    ENSURE(change.task < graph.size() && change.device.index() < devices,
           "memory changes with a task on a device");
    const std::uint32_t position = position_of[change.task];
    const std::int64_t end = times.end[position];
    const std::int64_t duration = prices[compiled.work[position]].count();
    const bool at_end = change.when == MemoryChange::When::kEnd;
    events[change.device.index()].push_back({.time = at_end ? end : end - duration,
                                             .position = at_end && duration > 0 ? 0 : position + 1,
                                             .when = change.when,
                                             .kind = change.kind,
                                             .delta = change.delta});
  }
  return events;
}

std::int64_t total_of(const Amounts& amounts) {
  std::int64_t total = 0;
  for (const std::int64_t amount : amounts) {
    ENSURE(amount >= 0, "more memory goes than was there");
    total += amount;
  }
  return total;
}

void note_peak(const Amounts& now, std::int64_t time, MemoryPeak& peak) {
  const std::int64_t total = total_of(now);
  if (total <= peak.total.count) {
    return;
  }
  peak.total = Bytes{total};
  peak.at = TimePoint{Duration{time}};
  for (std::size_t kind = 0; kind < now.size(); ++kind) {
    peak.held[kind] = Bytes{now[kind]};
  }
}

// Calls `note(amounts, time)` at the start and after each moment with changes.
template <class Note>
void replay(Amounts now, std::vector<MemoryEvent>& events, Note note) {
  // One lane's changes mostly come in the order of time, so there is often nothing to sort.
  if (!std::is_sorted(events.begin(), events.end(), happens_before)) {
    std::stable_sort(events.begin(), events.end(), happens_before);
  }
  note(now, 0);
  for (auto event = events.begin(); event != events.end();) {
    const auto moment = event->key();
    const std::int64_t time = event->time;
    for (; event != events.end() && event->key() == moment; ++event) {
      now[static_cast<std::size_t>(event->kind)] += event->delta;
    }
    note(now, time);
  }
}

MemoryPeak peak_of(const Amounts& held, std::vector<MemoryEvent>& events) {
  MemoryPeak peak;
  replay(held, events, [&](const Amounts& now, std::int64_t time) { note_peak(now, time, peak); });
  return peak;
}

// Adds a moment to the curve. A time keeps its largest moment and, if that is less, its last.
void note_moment(const MemoryMoment& moment, std::vector<MemoryMoment>& curve, bool& at_most) {
  if (curve.empty() || curve.back().at != moment.at) {
    curve.push_back(moment);
    at_most = true;
  } else if (at_most && moment.total < curve.back().total) {
    curve.push_back(moment);
    at_most = false;
  } else if (!at_most && moment.total > curve[curve.size() - 2].total) {
    curve.pop_back();
    curve.back() = moment;
    at_most = true;
  } else {
    curve.back() = moment;
  }
}

MemoryTrace trace_of(const Amounts& held, std::vector<MemoryEvent>& events) {
  MemoryTrace trace;
  bool at_most = true;
  replay(held, events, [&](const Amounts& now, std::int64_t time) {
    note_moment({TimePoint{Duration{time}}, Bytes{total_of(now)}}, trace.curve, at_most);
    for (std::size_t kind = 0; kind < now.size(); ++kind) {
      trace.most[kind] = std::max(trace.most[kind], Bytes{now[kind]});
    }
  });
  return trace;
}

std::vector<Amounts> held_throughout(const TaskGraph& graph, std::size_t devices) {
  std::vector<Amounts> held(devices, Amounts{});
  for (const TaskGraph::Held& hold : graph.held()) {
    ENSURE(hold.device.index() < devices, "memory is held on a device");
    held[hold.device.index()][static_cast<std::size_t>(hold.kind)] += hold.size.count;
  }
  return held;
}

}  // namespace

std::string_view memory_kind_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kParameters:
      return "parameters";
    case MemoryKind::kGradients:
      return "gradients";
    case MemoryKind::kOptimizer:
      return "optimizer";
    case MemoryKind::kStash:
      return "stash";
    case MemoryKind::kReceive:
      return "receive";
    case MemoryKind::kCache:
      return "cache";
  }
  fail_ensure(__FILE__, __LINE__, "a kind of memory");
}

std::vector<MemoryTrace> trace_memory(const TaskGraph& graph, const CompiledGraph& compiled,
                                      const SweepTimes& times, std::span<const Duration> prices,
                                      int devices) {
  const auto count = static_cast<std::size_t>(devices);
  const std::vector<Amounts> held = held_throughout(graph, count);
  std::vector<std::vector<MemoryEvent>> events =
      events_by_device(graph, compiled, times, prices, count);
  std::vector<MemoryTrace> traces;
  traces.reserve(count);
  for (std::size_t d = 0; d < count; ++d) traces.push_back(trace_of(held[d], events[d]));
  return traces;
}

std::vector<MemoryPeak> peak_memory(const TaskGraph& graph, const CompiledGraph& compiled,
                                    const SweepTimes& times, std::span<const Duration> prices,
                                    int devices) {
  const auto count = static_cast<std::size_t>(devices);
  const std::vector<Amounts> held = held_throughout(graph, count);
  std::vector<std::vector<MemoryEvent>> events =
      events_by_device(graph, compiled, times, prices, count);
  std::vector<MemoryPeak> peaks;
  peaks.reserve(count);
  for (std::size_t d = 0; d < count; ++d) peaks.push_back(peak_of(held[d], events[d]));
  return peaks;
}

}  // namespace frazil
