#include "traces/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kMostPictureColumns = 1'000'000;
constexpr int kDigits = 10;
constexpr int kLetters = 20;  // a..t: 'U' stays free for the update

// Returns the first start and last end of the spans for which `counts` holds; equal times when
// there are none.
template <class Counts>
std::pair<TimePoint, TimePoint> extent(const Timeline& timeline, Counts counts) {
  TimePoint first = TimePoint::max();
  TimePoint last = TimePoint::min();
  for (const Span& span : timeline.spans) {
    if (!counts(span)) continue;
    first = std::min(first, span.start);
    last = std::max(last, span.end);
  }
  if (last < first) return {TimePoint{}, TimePoint{}};
  return {first, last};
}

bool keeps_busy(const Span& span) {
  return span.lane == Lane::kCompute && is_compute(span.action.kind);
}

template <class Counts>
Duration sum_of(const Timeline& timeline, Counts counts) {
  Duration total{0};
  for (const Span& span : timeline.spans) {
    if (keeps_busy(span) && counts(span)) total += span.duration();
  }
  return total;
}

double idle_share(const Timeline& timeline, Duration length) {
  const double capacity =
      static_cast<double>(timeline.devices) * static_cast<double>(length.count());
  if (capacity == 0) return 0;
  return 1 - static_cast<double>(busy(timeline).count()) / capacity;
}

char digit_of(const Action& action) {
  return static_cast<char>('0' + action.micro_batches.value().first.value % kDigits);
}

char letter_of(const Action& action, char first_letter) {
  return static_cast<char>(first_letter + action.micro_batches.value().first.value % kLetters);
}

// Returns the symbol of `action` in `column`, counted from the first column that the action fills.
char symbol_of(const Action& action, std::int64_t column) {
  switch (action.kind) {
    case ActionKind::kForward:
      return digit_of(action);
    case ActionKind::kBackwardInput:
    case ActionKind::kBackward:
      return letter_of(action, 'a');
    case ActionKind::kBackwardWeight:
      return letter_of(action, 'A');
    case ActionKind::kRecompute:
      return '*';
    case ActionKind::kUpdate:
      return 'U';
    case ActionKind::kReduceGradients:
      return '=';
    case ActionKind::kPair: {
      const std::vector<Action>& halves = std::get<ActionPair>(action.detail).halves;
      return symbol_of(halves[static_cast<std::size_t>(column % 2)], 0);
    }
    case ActionKind::kSendForward:
    case ActionKind::kReceiveForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveBackward:
    case ActionKind::kUnshard:
    case ActionKind::kReshard:
    case ActionKind::kBarrier:
    case ActionKind::kMove:
      return ' ';
  }
  return ' ';
}

std::int64_t ceiling(Duration time, Duration cell) {
  return time / cell + (time % cell == Duration{0} ? 0 : 1);
}

// Returns the first column whose middle is at `time` or later.
std::int64_t column_at(Duration time, Duration cell) {
  return ceiling(std::max(Duration{0}, time - cell / 2), cell);
}

void draw_span(const Span& span, TimePoint origin, Duration cell, std::string& row) {
  const std::int64_t first = column_at(span.start - origin, cell);
  const std::int64_t last =
      std::min(column_at(span.end - origin, cell), static_cast<std::int64_t>(row.size()));
  for (std::int64_t column = first; column < last; ++column) {
    row[static_cast<std::size_t>(column)] = symbol_of(span.action, column - first);
  }
}

}  // namespace

std::string_view lane_name(Lane lane) {
  switch (lane) {
    case Lane::kCompute:
      return "compute";
    case Lane::kSend:
      return "send";
    case Lane::kReceive:
      return "receive";
    case Lane::kCollective:
      return "collective";
    case Lane::kHost:
      return "host";
  }
  return "";
}

Lane parse_lane(std::string_view text, const std::string& file, int line) {
  for (const Lane lane :
       {Lane::kCompute, Lane::kSend, Lane::kReceive, Lane::kCollective, Lane::kHost}) {
    if (text == lane_name(lane)) return lane;
  }
  throw InputError(file, line, "lane \"" + std::string(text) + "\"",
                   "compute, send, receive, collective or host");
}

bool comes_before(const Span& a, const Span& b) {
  const auto key = [](const Span& span) {
    return std::make_tuple(span.start, span.device, span.lane, span.end, span.action.step);
  };
  return key(a) < key(b);
}

void sort_spans(Timeline& timeline) {
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(), comes_before);
}

Duration makespan(const Timeline& timeline) {
  const auto [first, last] = extent(timeline, [](const Span&) { return true; });
  return last - first;
}

Duration span_of(const Timeline& timeline, DeviceId device) {
  const auto [first, last] =
      extent(timeline, [device](const Span& span) { return span.device == device; });
  return last - first;
}

Duration max_span(const Timeline& timeline) {
  std::vector<std::pair<TimePoint, TimePoint>> extents(static_cast<std::size_t>(timeline.devices),
                                                       {TimePoint::max(), TimePoint::min()});
  Duration longest{0};
  for (const Span& span : timeline.spans) {
    auto& [first, last] = extents.at(span.device.index());
    first = std::min(first, span.start);
    last = std::max(last, span.end);
    longest = std::max(longest, last - first);
  }
  return longest;
}

Duration busy(const Timeline& timeline, DeviceId device) {
  return sum_of(timeline, [device](const Span& span) { return span.device == device; });
}

Duration busy(const Timeline& timeline) {
  return sum_of(timeline, [](const Span&) { return true; });
}

double bubble(const Timeline& timeline) { return idle_share(timeline, makespan(timeline)); }

double bubble_of_span(const Timeline& timeline) { return idle_share(timeline, max_span(timeline)); }

Timeline step_of(const Timeline& timeline, Step step) { return window_of(timeline, step, 1); }

Timeline window_of(const Timeline& timeline, Step first, Step count) {
  const auto is_of_step = [=](const Span& span) {
    return span.action.step >= first && span.action.step - first < count;
  };
  const Duration shift = extent(timeline, is_of_step).first - TimePoint{};
  Timeline result{.devices = timeline.devices, .spans = {}};
  std::copy_if(timeline.spans.begin(), timeline.spans.end(), std::back_inserter(result.spans),
               is_of_step);
  for (Span& span : result.spans) {
    span.start -= shift;
    span.end -= shift;
  }
  return result;
}

std::vector<Step> steps_of(const Timeline& timeline) {
  std::vector<Step> steps;
  for (const Span& span : timeline.spans) {
    // Spans of one step mostly stand together, so this check keeps the list to be sorted short.
    if (steps.empty() || steps.back() != span.action.step) steps.push_back(span.action.step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

std::vector<Step> windows_of(const Timeline& timeline, Step count) {
  ENSURE(count >= 1, "a window has a step");
  std::vector<Step> windows;
  Step first = 0;
  Step length = 0;
  for (const Step step : steps_of(timeline)) {
    if (length == 0 || step != first + length) {
      first = step;
      length = 0;
    }
    if (++length < count) continue;
    windows.push_back(first);
    length = 0;
  }
  return windows;
}

std::string draw(const Timeline& timeline, Duration cell) {
  ENSURE(cell > Duration{0}, "a picture needs a cell of time");
  const auto [first, last] = extent(timeline, [](const Span&) { return true; });
  const std::int64_t columns = ceiling(last - first, cell);
  ENSURE(columns <= kMostPictureColumns, "a picture has at most 1000000 columns");
  std::vector<std::string> rows(static_cast<std::size_t>(timeline.devices),
                                std::string(static_cast<std::size_t>(columns), ' '));
  for (const bool compute : {false, true}) {
    for (const Span& span : timeline.spans) {
      const bool drawn =
          compute ? keeps_busy(span) : span.action.kind == ActionKind::kReduceGradients;
      if (drawn) draw_span(span, first, cell, rows.at(span.device.index()));
    }
  }
  std::string picture;
  const std::size_t width = std::to_string(std::max(timeline.devices - 1, 0)).size();
  for (std::size_t device = 0; device < rows.size(); ++device) {
    picture += fmt::format("d{:<{}} |{}|\n", device, width, rows[device]);
  }
  return picture;
}

}  // namespace frazil
