#include "traces/timeline_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr std::string_view kTitle = "# frazil.timeline 1 devices=";
constexpr std::string_view kUncertainty = " clock_uncertainty_ns=";
constexpr std::string_view kHeader = "device,lane,step,action,start_ns,end_ns";
constexpr std::size_t kColumns = 6;
constexpr std::int64_t kMaximum = std::numeric_limits<std::int64_t>::max();
// Half the range of 64 bits, so that every difference of two times fits.
constexpr std::int64_t kEarliestTime = -(std::int64_t{1} << 62);
constexpr std::int64_t kLatestTime = -(kEarliestTime + 1);
// Users of a time line keep a record per device, in use or not.
constexpr int kMostDevices = 1 << 20;

std::int64_t nanoseconds(TimePoint time) { return time.time_since_epoch().count(); }

bool is_time(std::int64_t time) { return time >= kEarliestTime && time <= kLatestTime; }

bool halves_share_step(const Action& action) {
  const auto* pair = std::get_if<ActionPair>(&action.detail);
  return pair == nullptr ||
         std::all_of(pair->halves.begin(), pair->halves.end(),
                     [&action](const Action& half) { return half.step == action.step; });
}

bool can_be_written(const Span& span, int devices) {
  return span.device.value >= 0 && span.device.value < devices && span.action.step >= 0 &&
         span.start <= span.end && is_time(nanoseconds(span.start)) &&
         is_time(nanoseconds(span.end)) && halves_share_step(span.action);
}

template <class Integer>
void append_integer(std::string& text, Integer number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

void append_line(std::string& text, const Span& span) {
  append_integer(text, span.device.value);
  text += ',';
  text += lane_name(span.lane);
  text += ',';
  append_integer(text, span.action.step);
  text += ',';
  append_text(text, span.action);
  text += ',';
  append_integer(text, nanoseconds(span.start));
  text += ',';
  append_integer(text, nanoseconds(span.end));
  text += '\n';
}

class TimelineReader {
 public:
  TimelineReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  Timeline read() {
    read_title();
    if (const auto header = next_line(); header != kHeader) {
      fail(header ? fmt::format("\"{}\"", *header) : "the end of the file",
           fmt::format("\"{}\"", kHeader));
    }
    while (const auto line = next_line()) {
      Span span = read_span(split(*line));
      check_order(span);
      timeline_.spans.push_back(std::move(span));
    }
    return std::move(timeline_);
  }

  std::optional<Duration> read_uncertainty() {
    read_title();
    return uncertainty_;
  }

 private:
  using Fields = std::array<std::string_view, kColumns>;

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(file_, line_, found, expected);
  }

  // Returns the next line. A last line without its end is refused: a number in it may have been cut
  // short.
  std::optional<std::string_view> next_line() {
    ++line_;
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("a line without its end", "a whole line");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  std::int64_t integer(std::string_view text, const char* column, std::int64_t minimum,
                       std::int64_t maximum) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view digits = text.substr(text.substr(0, 1) == "-" ? 1 : 0);
    const bool other_form = digits.substr(0, 1) == "0" && text != "0";
    if (error != std::errc{} || end != text.data() + text.size() || other_form || value < minimum ||
        value > maximum) {
      fail(fmt::format("{} \"{}\"", column, text),
           fmt::format("an integer from {} to {}", minimum, maximum));
    }
    return value;
  }

  void read_title() {
    const auto line = next_line();
    if (!line || line->substr(0, kTitle.size()) != kTitle) {
      fail(line ? fmt::format("\"{}\"", *line) : "an empty file",
           fmt::format("\"{}<number of devices>\"", kTitle));
    }
    const std::string_view facts = line->substr(kTitle.size());
    const std::size_t end = std::min(facts.find(kUncertainty), facts.size());
    timeline_.devices = static_cast<int>(integer(facts.substr(0, end), "devices", 0, kMostDevices));
    if (end == facts.size()) return;
    uncertainty_ = Duration{
        integer(facts.substr(end + kUncertainty.size()), "clock_uncertainty_ns", 0, kLatestTime)};
  }

  Fields split(std::string_view line) const {
    const auto commas = std::count(line.begin(), line.end(), ',');
    if (commas + 1 != static_cast<std::ptrdiff_t>(kColumns)) {
      fail(fmt::format("{} columns", commas + 1), fmt::format("{} columns", kColumns));
    }
    Fields fields;
    for (std::string_view& field : fields) {
      const std::size_t end = std::min(line.find(','), line.size());
      field = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    return fields;
  }

  Span read_span(const Fields& fields) const {
    Span span;
    const auto [device, lane, step, action, start, end] = fields;
    span.device = DeviceId{static_cast<std::int32_t>(
        integer(device, "device", 0, std::int64_t{timeline_.devices} - 1))};
    span.lane = parse_lane(lane, file_, line_);
    span.action = parse_action(action, file_, line_);
    set_step(span.action, integer(step, "step", 0, kMaximum));
    span.start = TimePoint{Duration{integer(start, "start_ns", kEarliestTime, kLatestTime)}};
    span.end = TimePoint{Duration{integer(end, "end_ns", kEarliestTime, kLatestTime)}};
    if (span.end < span.start) {
      fail(fmt::format("end_ns {} before start_ns {}", end, start),
           "a span that ends after it starts");
    }
    return span;
  }

  void check_order(const Span& span) {
    if (!timeline_.spans.empty() && comes_before(span, timeline_.spans.back())) {
      fail("a span before the one above it", "spans by start, device, lane, end and step");
    }
    if (span.lane != Lane::kCompute) return;
    const auto [before, is_first] = compute_end_.try_emplace(span.device, span.end);
    if (!is_first && span.start < before->second) {
      fail(fmt::format("a compute span of device {} that starts before the last one ends",
                       span.device.value),
           "compute spans of a device one after another");
    }
    before->second = std::max(before->second, span.end);
    if (__builtin_add_overflow(compute_total_, span.duration().count(), &compute_total_)) {
      fail("compute spans that add up to 2^63 ns or more", "less compute time");
    }
  }

  std::string_view rest_;
  const std::string& file_;
  int line_ = 0;
  std::optional<Duration> uncertainty_;
  Timeline timeline_;
  std::map<DeviceId, TimePoint> compute_end_;
  std::int64_t compute_total_ = 0;
};

}  // namespace

std::string to_csv(const Timeline& timeline, const std::optional<Duration>& clock_uncertainty) {
  Timeline sorted;
  const Timeline* source = &timeline;
  if (!std::is_sorted(timeline.spans.begin(), timeline.spans.end(), comes_before)) {
    sorted = timeline;
    sort_spans(sorted);
    source = &sorted;
  }
  ENSURE(0 <= timeline.devices && timeline.devices <= kMostDevices,
         "a time line has 0 to 2^20 devices");
  std::string text = fmt::format("{}{}", kTitle, timeline.devices);
  if (clock_uncertainty) text += fmt::format("{}{}", kUncertainty, clock_uncertainty->count());
  text += fmt::format("\n{}\n", kHeader);
  for (const Span& span : source->spans) {
    ENSURE(can_be_written(span, timeline.devices),
           fmt::format("span {} is outside the time line", to_text(span.action)));
    append_line(text, span);
  }
  return text;
}

Timeline parse_timeline_csv(std::string_view text, const std::string& file) {
  return TimelineReader(text, file).read();
}

std::optional<Duration> parse_clock_uncertainty(std::string_view text, const std::string& file) {
  return TimelineReader(text, file).read_uncertainty();
}

std::optional<Duration> read_clock_uncertainty(const std::filesystem::path& path) {
  return parse_clock_uncertainty(read_text_file(path), path.string());
}

Timeline read_timeline_csv(const std::filesystem::path& path) {
  return parse_timeline_csv(read_text_file(path), path.string());
}

}  // namespace frazil
