#include "tests/traces/chrome_trace_reader.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "traces/chrome_trace.h"
#include "traces/json_stream.h"
#include "traces/microseconds.h"

namespace frazil {
namespace {

constexpr std::int64_t kLanes = 5;
constexpr const char* kOurs = "a Chrome trace that frazil wrote";

// Holds the members of one event; unknown members are refused.
struct RawEvent {
  std::string name;
  std::string category;
  std::string phase;
  std::optional<std::int64_t> process;
  std::optional<std::int64_t> thread;
  std::optional<std::int64_t> start;  // ns
  std::optional<std::int64_t> duration;
  std::string argument_name;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> last_micro_batch;
};

class ChromeReader {
 public:
  explicit ChromeReader(JsonStream& stream) : stream_(stream) {}

  std::vector<OwnedTimeline> read() {
    bool has_events = false;
    stream_.enter_object();
    while (stream_.next_member()) {
      const std::string key(stream_.key());
      if (key == "displayTimeUnit") {
        stream_.skip();
      } else if (key == "otherData" && !has_header_) {
        read_header();
      } else if (key == "traceEvents" && has_header_ && !std::exchange(has_events, true)) {
        stream_.enter_array();
        while (stream_.next_item()) read_event();
      } else {
        stream_.fail(fmt::format("the key \"{}\"", key), kOurs);
      }
    }
    if (!has_events) stream_.fail("no `traceEvents`", kOurs);
    if (started_ != timelines_.size()) {
      stream_.fail(fmt::format("{} of {} time lines", started_, timelines_.size()), "all of them");
    }
    stream_.finish();
    return std::move(timelines_);
  }

 private:
  void read_header() {
    std::string format;
    std::int64_t version = 0;
    stream_.enter_object();
    while (stream_.next_member()) {
      const std::string key(stream_.key());
      if (key == "format") {
        format = stream_.text();
      } else if (key == "version") {
        version = stream_.integer();
      } else if (key == "devices") {
        read_devices();
      } else {
        stream_.fail(fmt::format("the key \"{}\"", key), kOurs);
      }
    }
    if (format != "frazil.timelines" || version != 1) {
      stream_.fail(fmt::format("the format \"{}\" {}", format, version), kOurs);
    }
    has_header_ = true;
  }

  void read_devices() {
    stream_.enter_array();
    while (stream_.next_item()) {
      const std::int64_t devices = stream_.integer();
      if (devices < 0 || devices > std::numeric_limits<std::int32_t>::max()) {
        stream_.fail(fmt::format("{} devices", devices), "0 to 2^31 - 1");
      }
      timelines_.push_back({"", {static_cast<int>(devices), {}}});
    }
  }

  void read_event() {
    RawEvent event;
    stream_.enter_object();
    while (stream_.next_member()) read_member(std::string(stream_.key()), event);
    if (event.phase == "X") return add_span(event);
    if (event.phase != "M") stream_.fail(fmt::format("an event \"{}\"", event.phase), "X or M");
    if (event.name == "process_name") return start_timeline(event);
    if (event.name != "thread_name") stream_.fail(fmt::format("\"{}\"", event.name), kOurs);
  }

  void read_member(const std::string& key, RawEvent& event) {
    if (key == "name") {
      event.name = stream_.text();
    } else if (key == "cat") {
      event.category = stream_.text();
    } else if (key == "ph") {
      event.phase = stream_.text();
    } else if (key == "pid") {
      event.process = stream_.integer();
    } else if (key == "tid") {
      event.thread = stream_.integer();
    } else if (key == "ts") {
      event.start = read_time();
    } else if (key == "dur") {
      event.duration = read_time();
    } else if (key == "args") {
      stream_.enter_object();
      while (stream_.next_member()) read_argument(std::string(stream_.key()), event);
    } else {
      stream_.fail(fmt::format("the key \"{}\"", key), kOurs);
    }
  }

  void read_argument(const std::string& key, RawEvent& event) {
    if (key == "name") {
      event.argument_name = stream_.text();
    } else if (key == "step") {
      event.step = stream_.integer();
    } else if (key == "device") {
      event.device = stream_.integer();
    } else if (key == "micro_batch") {
      event.micro_batch = stream_.integer();
    } else if (key == "last_micro_batch") {
      event.last_micro_batch = stream_.integer();
    } else {
      stream_.fail(fmt::format("the argument \"{}\"", key), kOurs);
    }
  }

  std::int64_t read_time() {
    const std::string_view number = stream_.number();
    const auto time = parse_microseconds(number);
    // Refuses a number in any form but to_microseconds' own, which alone is exact both ways.
    if (!time || to_microseconds(Duration{*time}) != number) {
      stream_.fail(fmt::format("the time {}", number), "microseconds with three decimals");
    }
    return *time;
  }

  // Each time line begins with its name, and its events follow.
  void start_timeline(const RawEvent& event) {
    const auto number = static_cast<std::int64_t>(started_) + 1;
    if (started_ == timelines_.size() || event.process != number) {
      stream_.fail(fmt::format("the name of process {}", event.process.value_or(0)),
                   fmt::format("processes 1 to {} in order", timelines_.size()));
    }
    timelines_[started_++].name = event.argument_name;
  }

  void add_span(const RawEvent& event) {
    const bool is_whole = event.process && event.thread && event.start && event.duration &&
                          event.step && event.device;
    if (!is_whole) stream_.fail("a span that lacks a member", "pid, tid, ts, dur, step and device");
    if (started_ == 0 || *event.process != static_cast<std::int64_t>(started_)) {
      stream_.fail(fmt::format("a span of process {}", *event.process), "the process named last");
    }
    Timeline& timeline = timelines_[started_ - 1].timeline;
    const std::int64_t lane = *event.thread - *event.device * kChromeThreadsPerDevice;
    if (*event.device < 0 || *event.device >= timeline.devices || lane < 0 || lane >= kLanes) {
      stream_.fail(fmt::format("a span of device {} on thread {}", *event.device, *event.thread),
                   fmt::format("one of {} devices, and a lane of it", timeline.devices));
    }
    if (*event.step < 0) stream_.fail(fmt::format("step {}", *event.step), "none below zero");
    std::int64_t end = 0;
    if (*event.duration < 0 || __builtin_add_overflow(*event.start, *event.duration, &end) ||
        end > kLatestNanoseconds) {
      stream_.fail("a span that ends before it starts or beyond 2^62 ns", "an end after the start");
    }
    Span span;
    span.device = DeviceId{static_cast<std::int32_t>(*event.device)};
    span.lane = static_cast<Lane>(lane);
    span.action = parse_action(event.name, stream_.file(), stream_.line());
    set_step(span.action, *event.step);
    span.start = TimePoint{Duration{*event.start}};
    span.end = TimePoint{Duration{end}};
    check_labels(event, span.action);
    timeline.spans.push_back(std::move(span));
  }

  // Checks what the event tells twice: its category and micro-batches repeat its action.
  void check_labels(const RawEvent& event, const Action& action) const {
    const auto& micro_batches = action.micro_batches;
    const bool is_same = event.category == kind_name(action.kind) &&
                         event.micro_batch.has_value() == micro_batches.has_value() &&
                         (!micro_batches || (*event.micro_batch == micro_batches->first.value &&
                                             event.last_micro_batch.value_or(*event.micro_batch) ==
                                                 micro_batches->last.value));
    if (!is_same) {
      stream_.fail(fmt::format("labels that are not those of {}", event.name),
                   "its kind and micro-batches");
    }
  }

  JsonStream& stream_;
  bool has_header_ = false;
  std::vector<OwnedTimeline> timelines_;
  std::size_t started_ = 0;
};

}  // namespace

std::vector<OwnedTimeline> parse_chrome_trace(std::string_view text, const std::string& file) {
  JsonStream stream(text, file);
  return ChromeReader(stream).read();
}

}  // namespace frazil
