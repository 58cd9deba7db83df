#include "traces/kineto/kineto_join.h"

#include <algorithm>
#include <compare>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace frazil {
namespace {

constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

bool starts_earlier(const HostOperation& a, const HostOperation& b) {
  return a.start != b.start ? a.start < b.start : a.duration > b.duration;
}

template <class Record, class Less>
void sort_unless_sorted(std::deque<Record>& records, Less less) {
  if (std::is_sorted(records.begin(), records.end(), less)) return;
  std::stable_sort(records.begin(), records.end(), less);
}

HostWorkKind kind_of(const HostOperation& operation, std::string_view name) {
  if (node_name(name).ends_with("AccumulateGrad")) return HostWorkKind::kAccumulateGradient;
  const bool is_backward =
      name.starts_with(kEngine) || (operation.forward_thread > 0 && operation.sequence >= 0);
  return is_backward ? HostWorkKind::kBackwardNode : HostWorkKind::kForward;
}

NestedRanges take_ranges(const std::vector<HostRange>& all,
                         std::initializer_list<RangeKind> kinds) {
  std::vector<HostRange> taken;
  std::copy_if(all.begin(), all.end(), std::back_inserter(taken), [&](const HostRange& range) {
    return std::find(kinds.begin(), kinds.end(), range.kind) != kinds.end();
  });
  return NestedRanges(std::move(taken));
}

// Makes the works and ranges of one thread; afterwards finds the work or range at a time.
class ThreadJoin {
 public:
  ThreadJoin(std::size_t thread, HostThread operations, JoinedTrace& joined)
      : thread_(static_cast<std::uint16_t>(thread)),
        joined_(joined),
        marks_(take_ranges(operations.ranges, {RangeKind::kLayer, RangeKind::kUpdate})),
        modules_(take_ranges(operations.ranges, {RangeKind::kModule})),
        first_mark_(joined.ranges.size()),
        first_module_(first_mark_ + marks_.all().size()),
        first_work_(joined.works.size()) {
    add_works(operations);
    last_work_ = joined_.works.size();
    finish_ranges();
  }

  // Returns the last work that had begun; -1: none.
  std::int32_t work_before(std::int64_t time) const {
    const auto begin = joined_.works.begin() + static_cast<std::ptrdiff_t>(first_work_);
    const auto end = joined_.works.begin() + static_cast<std::ptrdiff_t>(last_work_);
    const auto after = std::upper_bound(
        begin, end, time, [](std::int64_t t, const HostWork& work) { return t < work.start; });
    return after == begin ? -1 : static_cast<std::int32_t>(after - joined_.works.begin()) - 1;
  }

  std::int32_t work_at(std::int64_t time) const {
    const std::int32_t work = work_before(time);
    if (work < 0 || time >= joined_.works[static_cast<std::size_t>(work)].end) return -1;
    return work;
  }

  std::int32_t mark_at(std::int64_t time) const {
    return place_of(marks_.innermost_at(time), first_mark_);
  }

 private:
  static std::int32_t place_of(std::int32_t range, std::size_t first) {
    return range < 0 ? -1 : range + static_cast<std::int32_t>(first);
  }

  void add_works(HostThread& thread) {
    std::deque<HostOperation>& operations = thread.operations;
    sort_unless_sorted(operations, starts_earlier);
    sort_unless_sorted(thread.node_inputs,
                       [](const NodeInput& a, const NodeInput& b) { return a.start < b.start; });
    // Operations are taken off the front while works grow at the back, so that memory never holds
    // both lists whole.
    for (; !operations.empty(); operations.pop_front()) {
      const HostOperation& operation = operations.front();
      const bool is_first = joined_.works.size() == first_work_;
      if (!is_first && operation.start < joined_.works.back().end) {
        lend_number(operation);
        continue;
      }
      add_work(operation);
      take_input(thread.node_inputs);
    }
  }

  void add_work(const HostOperation& operation) {
    HostWork work;
    work.start = operation.start;
    work.end = operation.start + operation.duration;
    work.sequence = operation.sequence;
    work.name = operation.name;
    work.forward_thread = operation.forward_thread;
    work.thread = thread_;
    work.kind = kind_of(operation, joined_.names[operation.name]);
    std::int32_t mark = marks_.innermost_at(work.start);
    if (mark < 0 && work.kind == HostWorkKind::kForward) {
      mark = marks_.first_start_in(work.start, work.end);
    }
    work.range = mark >= 0 ? place_of(mark, first_mark_)
                           : place_of(modules_.innermost_at(work.start), first_module_);
    joined_.works.push_back(work);
  }

  // Lends the engine's call the number of its node. The call takes its number from the event after
  // it, so it has none if a hook ran something before the node.
  void lend_number(const HostOperation& inner) {
    HostWork& work = joined_.works.back();
    const bool lacks_number = work.kind == HostWorkKind::kBackwardNode && work.sequence < 0;
    if (!lacks_number || inner.sequence < 0) return;
    if (node_name(joined_.names[work.name]) != joined_.names[inner.name]) return;
    work.sequence = inner.sequence;
    work.forward_thread = inner.forward_thread;
  }

  // Notes the input of the work just added: the first node input inside the engine's call is that
  // of its node.
  void take_input(std::deque<NodeInput>& inputs) {
    const HostWork& work = joined_.works.back();
    while (!inputs.empty() && inputs.front().start < work.start) inputs.pop_front();
    const bool has_input = !inputs.empty() && inputs.front().start < work.end;
    if (work.kind == HostWorkKind::kForward || !has_input) return;
    joined_.inputs.push_back(
        {static_cast<std::int32_t>(joined_.works.size()) - 1, inputs.front().bytes});
  }

  void finish_ranges() {
    for (NestedRange& mark : marks_.all()) {
      mark.step = joined_.steps.at(mark.start);
      const std::int32_t work = work_at(mark.start);
      mark.is_inside_backward =
          work >= 0 && joined_.works[static_cast<std::size_t>(work)].kind != HostWorkKind::kForward;
    }
    for (NestedRanges* ranges : {&marks_, &modules_}) {
      joined_.ranges.insert(joined_.ranges.end(), ranges->all().begin(), ranges->all().end());
    }
  }

  std::uint16_t thread_;
  JoinedTrace& joined_;
  NestedRanges marks_;
  NestedRanges modules_;
  std::size_t first_mark_;
  std::size_t first_module_;
  std::size_t first_work_;
  std::size_t last_work_ = 0;
};

// The host thread and time that a piece of device work comes from.
struct Origin {
  std::int32_t thread = -1;
  std::int64_t time = 0;
};

// An activity that looks for a host event, with the number that both carry.
struct Wanted {
  std::int64_t number = 0;
  std::uint32_t activity = 0;

  friend auto operator<=>(const Wanted&, const Wanted&) = default;
};

void answer(const std::vector<Wanted>& wanted, std::int64_t number, const Origin& origin,
            std::vector<Origin>& origins) {
  for (auto place = std::lower_bound(wanted.begin(), wanted.end(), Wanted{number, 0});
       place != wanted.end() && place->number == number; ++place) {
    origins[place->activity] = origin;
  }
}

void find_by_correlation(const KinetoTrace& trace, std::vector<Origin>& origins) {
  std::vector<Wanted> wanted;
  for (std::uint32_t i = 0; i < trace.device.size(); ++i) {
    if (trace.device[i].correlation != 0) wanted.push_back({trace.device[i].correlation, i});
  }
  std::sort(wanted.begin(), wanted.end());
  for (std::size_t thread = 0; thread < trace.threads.size(); ++thread) {
    for (const Launch& launch : trace.threads[thread].launches) {
      answer(wanted, launch.correlation, {static_cast<std::int32_t>(thread), launch.start},
             origins);
    }
  }
}

void find_by_external_id(const KinetoTrace& trace, std::vector<Origin>& origins) {
  std::vector<Wanted> wanted;
  for (std::uint32_t i = 0; i < trace.device.size(); ++i) {
    const std::uint32_t id = trace.device[i].external_id;
    if (origins[i].thread < 0 && id != 0) wanted.push_back({id, i});
  }
  if (wanted.empty()) return;
  std::sort(wanted.begin(), wanted.end());
  for (std::size_t thread = 0; thread < trace.threads.size(); ++thread) {
    for (const HostOperation& operation : trace.threads[thread].operations) {
      answer(wanted, operation.external_id, {static_cast<std::int32_t>(thread), operation.start},
             origins);
    }
  }
}

// Returns the rows that the first operation with parameters of every step reads; 0 if steps differ
// or one does not tell.
std::int64_t find_rows_read(const KinetoTrace& trace, const KinetoSteps& steps) {
  std::vector<RowsRead> first(steps.kept.size());
  for (const HostThread& thread : trace.threads) {
    for (const RowsRead& read : thread.rows_read) {
      const std::int32_t step = steps.at(read.start);
      if (step < 0) continue;
      RowsRead& earliest = first[static_cast<std::size_t>(step)];
      if (earliest.rows == 0 || read.start < earliest.start) earliest = read;
    }
  }
  const bool are_equal = std::all_of(first.begin(), first.end(), [&](const RowsRead& read) {
    return read.rows == first.front().rows;
  });
  return first.empty() || !are_equal ? 0 : first.front().rows;
}

void join_memory(std::deque<TracedMemory>& changes, const std::vector<ThreadJoin>& threads,
                 JoinedTrace& joined) {
  sort_unless_sorted(changes,
                     [](const TracedMemory& a, const TracedMemory& b) { return a.time < b.time; });
  std::vector<std::int64_t> backwards;
  for (const HostWork& work : joined.works) {
    if (work.kind == HostWorkKind::kBackwardNode) backwards.push_back(work.start);
  }
  std::sort(backwards.begin(), backwards.end());
  std::size_t passes = 0;
  for (; !changes.empty(); changes.pop_front()) {
    const TracedMemory& change = changes.front();
    const ThreadJoin& thread = threads[change.thread];
    while (passes < backwards.size() && backwards[passes] <= change.time) ++passes;
    MemoryWork work;
    work.address = change.address;
    work.bytes = change.bytes;
    work.step = joined.steps.at(change.time);
    work.work = thread.work_before(change.time);
    work.mark = thread.mark_at(change.time);
    work.passes = static_cast<std::int32_t>(passes);
    work.is_inside_work = thread.work_at(change.time) >= 0;
    work.is_on_device = change.is_on_device;
    joined.memory.push_back(work);
  }
}

}  // namespace

JoinedTrace join_trace(KinetoTrace trace) {
  std::vector<Origin> origins(trace.device.size());
  find_by_correlation(trace, origins);
  find_by_external_id(trace, origins);

  JoinedTrace joined;
  joined.steps = find_steps(trace);
  joined.file = std::move(trace.file);
  joined.names = std::move(trace.names);
  joined.events = trace.events;
  joined.gpus = std::move(trace.gpus);
  joined.rows_read = find_rows_read(trace, joined.steps);
  std::vector<ThreadJoin> threads;
  for (std::size_t thread = 0; thread < trace.threads.size(); ++thread) {
    threads.emplace_back(thread, std::move(trace.threads[thread]), joined);
  }
  join_memory(trace.memory, threads, joined);
  for (std::size_t i = 0; !trace.device.empty(); ++i, trace.device.pop_front()) {
    const DeviceActivity& activity = trace.device.front();
    const Origin& origin = origins[i];
    DeviceWork work;
    work.duration = activity.duration;
    work.is_communication = activity.is_communication;
    work.step = joined.steps.at(origin.thread < 0 ? activity.start : origin.time);
    if (origin.thread >= 0) {
      const ThreadJoin& thread = threads[static_cast<std::size_t>(origin.thread)];
      work.work = thread.work_at(origin.time);
      if (work.work < 0) work.range = thread.mark_at(origin.time);
    }
    joined.device.push_back(work);
  }
  return joined;
}

std::string_view node_name(std::string_view operation) {
  return operation.starts_with(kEngine) ? operation.substr(kEngine.size()) : operation;
}

}  // namespace frazil
