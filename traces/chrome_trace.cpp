#include "traces/chrome_trace.h"

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "profiles/json.h"
#include "traces/microseconds.h"

namespace frazil {
namespace {

std::int64_t thread_of(DeviceId device, Lane lane) {
  return std::int64_t{device.value} * kChromeThreadsPerDevice + static_cast<int>(lane);
}

class ChromeWriter {
 public:
  // The header tells the number of devices, for idle devices have no event.
  explicit ChromeWriter(const std::vector<NamedTimeline>& timelines) {
    text_ = R"({"displayTimeUnit":"ns","otherData":{"format":"frazil.timelines","version":1,)";
    std::vector<int> devices;
    for (const NamedTimeline& named : timelines) {
      ENSURE(named.timeline != nullptr, "a named time line needs its time line");
      devices.push_back(named.timeline->devices);
    }
    append(R"("devices":[{}])", fmt::join(devices, ","));
    for (const NamedTimeline& named : timelines) {
      if (!named.clock_uncertainty) continue;
      append(R"(,"clock_uncertainty_ns":{})", named.clock_uncertainty->count());
      break;
    }
    text_ += R"(},"traceEvents":[)";
  }

  void write(std::size_t process, const NamedTimeline& named) {
    begin_event();
    append(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})", process,
           json_string(named.name));
    std::set<std::pair<DeviceId, Lane>> threads;
    for (const Span& span : named.timeline->spans) threads.emplace(span.device, span.lane);
    for (const auto& [device, lane] : threads) {
      begin_event();
      append(
          R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"device {} {}"}}}})",
          process, thread_of(device, lane), device.value, lane_name(lane));
    }
    for (const Span& span : named.timeline->spans) write_span(process, span);
  }

  std::string finish() { return std::move(text_) + "\n]}\n"; }

 private:
  template <class... Values>
  void append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  void begin_event() {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
  }

  void write_span(std::size_t process, const Span& span) {
    begin_event();
    append(R"({{"name":"{}","cat":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{},)",
           to_text(span.action), kind_name(span.action.kind), process,
           thread_of(span.device, span.lane), to_microseconds(span.start.time_since_epoch()),
           to_microseconds(span.duration()));
    append(R"("args":{{"step":{},"device":{})", span.action.step, span.device.value);
    if (const auto& micro_batches = span.action.micro_batches) {
      append(R"(,"micro_batch":{})", micro_batches->first.value);
      if (micro_batches->count() > 1) {
        append(R"(,"last_micro_batch":{})", micro_batches->last.value);
      }
    }
    text_ += "}}";
  }

  std::string text_;
  bool is_first_ = true;
};

}  // namespace

std::string to_chrome_json(const std::vector<NamedTimeline>& timelines) {
  ChromeWriter writer(timelines);
  // Process numbers begin at 1: viewers take process 0 for the idle process.
  for (std::size_t i = 0; i < timelines.size(); ++i) writer.write(i + 1, timelines[i]);
  return writer.finish();
}

}  // namespace frazil
