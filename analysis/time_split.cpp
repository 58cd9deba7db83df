#include "analysis/time_split.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <variant>

#include "planner/actions/message.h"
#include "planner/answers/print_idle.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::string_view kBetween = "between actions";

// A compute that makes or takes a message: of a pipeline's stage, forward or backward, for a
// micro-batch of a step.
struct Work {
  Step step = 0;
  PipelineId pipeline;
  StageId stage;
  bool backward = false;
  MicroBatchId micro_batch;
  friend auto operator<=>(const Work&, const Work&) = default;
};

bool makes_gradients(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}

// Returns the works of a compute; `takes`: those that wait for a message, to which a W belongs
// where its stage has no I.
std::vector<Work> works_of(const Action& action, bool takes) {
  std::vector<Work> works;
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    for (const Action& half : pair->halves) {
      const std::vector<Work> more = works_of(half, takes);
      works.insert(works.end(), more.begin(), more.end());
    }
    return works;
  }
  const bool forward = action.kind == ActionKind::kForward;
  const bool backward =
      makes_gradients(action.kind) || (takes && action.kind == ActionKind::kBackwardWeight);
  if (!action.micro_batches || (!forward && !backward)) return works;
  for (std::int32_t i = action.micro_batches->first.value; i <= action.micro_batches->last.value;
       ++i) {
    works.push_back({action.step, action.pipeline, action.stage, backward, MicroBatchId{i}});
  }
  return works;
}

struct Wait {
  TimePoint until;  // the end of the producer
  bool is_forward = false;
};

Duration overlap(const Span& span, TimePoint from, TimePoint to) {
  return std::max(Duration{0}, std::min(span.end, to) - std::max(span.start, from));
}

class StepSplit {
 public:
  explicit StepSplit(const Timeline& step) : step_(step) {
    for (const Span& span : step.spans) {
      if (span.lane == Lane::kReceive) is_measured_ = true;
      if (span.lane == Lane::kSend && is_send(span.action)) note_message(span.action);
      if (span.lane == Lane::kCompute) note_compute(span);
    }
  }

  std::vector<TimeSplit> run() {
    std::vector<TimeSplit> splits(static_cast<std::size_t>(step_.devices));
    if (step_.spans.empty()) return splits;
    for (const Span& span : step_.spans) {
      begin_ = std::min(begin_, span.start);
      end_ = std::max(end_, span.end);
    }
    for (std::size_t d = 0; d < splits.size(); ++d) splits[d] = split_device(DeviceId{d});
    return splits;
  }

 private:
  void note_message(const Action& send) {
    const Message message = message_of(send);
    sources_[{send.step, message.pipeline, message.to, message.backward, message.micro_batch}]
        .insert(message.from);
  }

  void note_compute(const Span& span) {
    for (const Work& work : works_of(span.action, false)) {
      TimePoint& end = ends_[work];
      end = std::max(end, span.end);
    }
  }

  // Returns the stages that a work has its input from: those that sent a message, else the
  // neighbour.
  std::set<StageId> sources_of(const Work& work) const {
    const auto sent = sources_.find(work);
    if (sent != sources_.end()) return sent->second;
    return {StageId{work.stage.value + (work.backward ? 1 : -1)}};
  }

  // Returns the wait for the input that is made last, if any of the works has one.
  std::optional<Wait> find_wait(const std::vector<Work>& works) const {
    std::optional<Wait> last;
    for (const Work& work : works) {
      for (const StageId source : sources_of(work)) {
        const auto end =
            ends_.find({work.step, work.pipeline, source, work.backward, work.micro_batch});
        if (end == ends_.end() || (last && end->second <= last->until)) continue;
        last = Wait{end->second, !work.backward};
      }
    }
    return last;
  }

  TimeSplit split_device(DeviceId device) const {
    std::vector<const Span*> computes;
    std::vector<const Span*> others;
    for (const Span& span : step_.spans) {
      if (span.device != device || span.lane == Lane::kHost) continue;
      (span.lane == Lane::kCompute ? computes : others).push_back(&span);
    }
    const auto is_earlier = [](const Span* a, const Span* b) {
      return std::tie(a->start, a->end) < std::tie(b->start, b->end);
    };
    std::stable_sort(computes.begin(), computes.end(), is_earlier);
    TimeSplit split;
    if (computes.empty()) {
      split.parts.fill = end_ - begin_;
      return split;
    }
    split.parts.fill = computes.front()->start - begin_;
    TimePoint since = computes.front()->start;
    for (const Span* const next : computes) {
      if (next->start > since) add_gap(since, *next, others, split);
      split.parts.compute += next->end - std::max(next->start, since);
      since = std::max(since, next->end);
    }
    split.parts.drain = end_ - since;
    return split;
  }

  void add_gap(TimePoint since, const Span& next, const std::vector<const Span*>& others,
               TimeSplit& split) const {
    if (next.action.kind == ActionKind::kUpdate) {
      split.parts.update += next.start - since;
    } else if (is_measured_) {
      add_measured_gap(since, next.start, others, split);
    } else if (const auto wait = find_wait(works_of(next.action, true))) {
      add_wait(*wait, since, next.start, split);
    } else {
      split.between += next.start - since;
    }
  }

  static void add_wait(const Wait& wait, TimePoint since, TimePoint until, TimeSplit& split) {
    const TimePoint made = std::clamp(wait.until, since, until);
    (wait.is_forward ? split.parts.wait_upstream : split.parts.wait_downstream) += made - since;
    split.parts.exposed_communication += until - made;
  }

  void add_measured_gap(TimePoint since, TimePoint until, const std::vector<const Span*>& others,
                        TimeSplit& split) const {
    Duration rest = until - since;
    for (const Span* const span : others) {
      const Duration inside = overlap(*span, since, until);
      if (inside == Duration{0}) continue;
      rest -= inside;
      const std::optional<Wait> wait = find_wait(received_by(span->action));
      if (wait) {
        add_wait(*wait, std::max(span->start, since), std::min(span->end, until), split);
      } else {
        split.parts.exposed_communication += inside;
      }
    }
    split.between += rest;
  }

  // Returns the work that waits for the message of a RECV; nothing for other actions.
  static std::vector<Work> received_by(const Action& action) {
    if (!is_receive(action)) return {};
    const Message message = message_of(action);
    return {{action.step, message.pipeline, message.to, message.backward, message.micro_batch}};
  }

  const Timeline& step_;
  bool is_measured_ = false;
  std::map<Work, std::set<StageId>> sources_;
  std::map<Work, TimePoint> ends_;
  TimePoint begin_ = TimePoint::max();
  TimePoint end_ = TimePoint::min();
};

TimeSplit divide(const TimeSplit& sum, std::int64_t by) {
  TimeSplit mean = sum;
  for (const TimePart& part : kTimeParts) mean.parts.*part.part /= by;
  mean.between /= by;
  return mean;
}

}  // namespace

double TimeSplit::bubble() const {
  const Duration all = total();
  if (all == Duration{0}) return 0;
  return 1 - static_cast<double>(parts.compute.count()) / static_cast<double>(all.count());
}

std::vector<std::string_view> list_titles() {
  std::vector<std::string_view> titles;
  for (const TimePart& part : kTimeParts) titles.push_back(part.title);
  titles.push_back(kBetween);
  return titles;
}

Duration part_of(const TimeSplit& split, std::string_view title) {
  if (title == kBetween) return split.between;
  const auto part = std::find_if(kTimeParts.begin(), kTimeParts.end(),
                                 [&](const TimePart& other) { return other.title == title; });
  ENSURE(part != kTimeParts.end(), "a title of the list");
  return split.parts.*part->part;
}

TimeSplit operator+(const TimeSplit& a, const TimeSplit& b) {
  const std::array both{a.parts, b.parts};
  return {sum(both), a.between + b.between};
}

std::vector<TimeSplit> split_time(const Timeline& step) { return StepSplit(step).run(); }

std::vector<TimeSplit> mean_splits_by_device(const Timeline& steps, Step window) {
  std::vector<TimeSplit> sums(static_cast<std::size_t>(steps.devices));
  const std::vector<Step> firsts = windows_of(steps, window);
  for (const Step first : firsts) {
    const std::vector<TimeSplit> splits = split_time(window_of(steps, first, window));
    for (std::size_t d = 0; d < sums.size(); ++d) sums[d] = sums[d] + splits[d];
  }
  if (firsts.empty()) return {};
  const std::int64_t all = static_cast<std::int64_t>(firsts.size()) * window;
  for (TimeSplit& sum : sums) sum = divide(sum, all);
  return sums;
}

std::optional<TimeSplit> mean_split(const Timeline& steps, Step window) {
  const std::vector<TimeSplit> devices = mean_splits_by_device(steps, window);
  if (devices.empty()) return std::nullopt;
  TimeSplit sum;
  for (const TimeSplit& device : devices) sum = sum + device;
  return divide(sum, static_cast<std::int64_t>(devices.size()));
}

}  // namespace frazil
