#include "traces/kernel_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "profiles/error.h"
#include "traces/microseconds.h"

namespace frazil {
namespace {

constexpr int kFirstStream = 7;  // as in PyTorch; the analysis ignores streams 0 and below
constexpr int kStepThread = 1;   // on the host
constexpr int kHostLaneThread = 2;

// The category and name prefix that tell what a row is.
struct RowKind {
  std::string_view category;
  std::string_view prefix;
};

bool is_device(const Place& place) { return place.kind == Place::Kind::kDevice; }

RowKind copy_kind(const CellMove& move) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"Memcpy HtoH ", "Memcpy HtoD ",
                                                         "Memcpy DtoH ", "Memcpy PtoP "};
  const int prefix = (is_device(move.from) ? 2 : 0) + (is_device(move.to) ? 1 : 0);
  return {"gpu_memcpy", kPrefixes[static_cast<std::size_t>(prefix)]};
}

RowKind kind_of_row(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
    case ActionKind::kBackward:
    case ActionKind::kRecompute:
    case ActionKind::kUpdate:
    case ActionKind::kPair:
      return {"kernel", ""};
    case ActionKind::kSendForward:
    case ActionKind::kReceiveForward:
    case ActionKind::kSendBackward:
    case ActionKind::kReceiveBackward:
      return {"kernel", "ncclDevKernel_SendRecv "};
    case ActionKind::kReduceGradients:
    case ActionKind::kBarrier:
      return {"kernel", "ncclDevKernel_AllReduce "};
    case ActionKind::kUnshard:
      return {"kernel", "ncclDevKernel_AllGather "};
    case ActionKind::kReshard:
      return {"gpu_memset", "Memset "};
    case ActionKind::kMove:
      return copy_kind(std::get<CellMove>(action.detail));
  }
  return {};
}

struct StepTime {
  TimePoint begin;
  TimePoint end;
};

// Finds the time of each step; a step ends when the next one in time begins.
std::map<Step, StepTime> find_steps(const std::vector<const Span*>& spans) {
  std::map<Step, StepTime> steps;
  TimePoint last = TimePoint::min();
  for (const Span* span : spans) {
    const auto [step, is_new] = steps.try_emplace(span->action.step, StepTime{span->start, {}});
    step->second.begin = std::min(step->second.begin, span->start);
    last = std::max(last, span->end);
  }
  std::vector<StepTime*> by_time;
  by_time.reserve(steps.size());
  for (auto& [number, step] : steps) by_time.push_back(&step);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [](const StepTime* a, const StepTime* b) { return a->begin < b->begin; });
  for (std::size_t i = 0; i < by_time.size(); ++i) {
    by_time[i]->end = i + 1 < by_time.size() ? by_time[i + 1]->begin : last;
  }
  return steps;
}

class KernelWriter {
 public:
  KernelWriter(const Timeline& timeline, DeviceId device)
      : device_(device.value),
        host_process_(2 * std::int64_t{device.value} + 1),
        device_process_(host_process_ + 1) {
    for (const Span& span : timeline.spans) {
      if (span.device == device) spans_.push_back(&span);
    }
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const Span* a, const Span* b) { return comes_before(*a, *b); });
    steps_ = find_steps(spans_);
    // The analysis looks for a rank with a space before it.
    append(R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank": {},)", device_);
    append(R"("world_size":{}}},"displayTimeUnit":"ns","traceEvents":[)", timeline.devices);
  }

  std::string write() {
    write_names();
    for (const auto& [number, step] : steps_) write_step(number, step);
    for (const Span* span : spans_) {
      if (span->lane == Lane::kHost) {
        write_host_span(*span);
      } else {
        write_launch(*span);
        write_device_span(*span);
      }
    }
    return std::move(text_) + "\n]}\n";
  }

 private:
  template <class... Values>
  void append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  void begin_row() {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
  }

  void write_names() {
    name_process(host_process_, "host of device");
    name_process(device_process_, "device");
    std::set<Lane> lanes;
    for (const Span* span : spans_) lanes.insert(span->lane);
    for (const Lane lane : lanes) {
      begin_row();
      append(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
             lane == Lane::kHost ? host_process_ : device_process_,
             lane == Lane::kHost ? kHostLaneThread : stream_of(lane), lane_name(lane));
    }
  }

  void name_process(std::int64_t process, std::string_view what) {
    begin_row();
    append(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":"{} {}"}}}})", process,
           what, device_);
  }

  static int stream_of(Lane lane) { return kFirstStream + static_cast<int>(lane); }

  void append_time(TimePoint start, Duration duration) {
    append(R"("ts":{},"dur":{})", to_microseconds(start.time_since_epoch()),
           to_microseconds(duration));
  }

  void write_step(Step number, const StepTime& step) {
    begin_row();
    append(R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":{},"tid":{},)",
           number, host_process_, kStepThread);
    append_time(step.begin, step.end - step.begin);
    text_ += "}";
  }

  void write_host_span(const Span& span) {
    begin_row();
    append(R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":{},"tid":{},)", to_text(span.action),
           host_process_, kHostLaneThread);
    append_time(span.start, span.duration());
    text_ += "}";
  }

  void write_launch(const Span& span) {
    begin_row();
    append(R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{},"tid":{},)",
           host_process_, kStepThread);
    append_time(launch_of(span), Duration{0});
    append(R"(,"args":{{"correlation":{}}}}})", ++correlation_);
  }

  TimePoint launch_of(const Span& span) {
    const StepTime& step = steps_.at(span.action.step);
    const Span* before = std::exchange(last_[span.lane], &span);
    const bool is_ahead =
        before != nullptr && before->action.step == span.action.step && before->start < step.end;
    return is_ahead ? before->start : step.begin;
  }

  void write_device_span(const Span& span) {
    const RowKind kind = kind_of_row(span.action);
    begin_row();
    append(R"({{"ph":"X","cat":"{}","name":"{}{}","pid":{},"tid":{},)", kind.category, kind.prefix,
           to_text(span.action), device_process_, stream_of(span.lane));
    append_time(span.start, span.duration());
    append(R"(,"args":{{"device":{},"stream":{},"correlation":{},"step":{}}}}})", device_,
           stream_of(span.lane), correlation_, span.action.step);
  }

  int device_;
  std::int64_t host_process_;  // begins at 1: viewers take process 0 for the idle process
  std::int64_t device_process_;
  std::vector<const Span*> spans_;  // ordered by time
  std::map<Step, StepTime> steps_;
  std::map<Lane, const Span*> last_;
  std::int64_t correlation_ = 0;
  std::string text_;
  bool is_first_ = true;
};

}  // namespace

std::string to_kernel_trace(const Timeline& timeline, DeviceId device) {
  ENSURE(device.value >= 0 && device.value < timeline.devices, "a device of the time line");
  return KernelWriter(timeline, device).write();
}

}  // namespace frazil
