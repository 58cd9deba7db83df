#include "traces/kineto/kineto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "profiles/error.h"
#include "profiles/units.h"
#include "traces/json_stream.h"
#include "traces/kineto/kineto_events.h"
#include "traces/microseconds.h"

namespace frazil {
namespace {

// A thread takes 2 KiB before its first event.
constexpr std::size_t kMostThreads = 16'384;

// One event as it stands in the file; reused from event to event.
struct RawEvent {
  char phase = '\0';
  EventCategory category = EventCategory::kOther;
  std::string name;
  std::string process;  // ids are numbers or texts, kept as written
  std::string thread;
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> duration;
  std::int64_t correlation = 0;
  std::int64_t external_id = 0;
  std::int64_t sequence = -1;
  std::int64_t forward_thread = 0;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t device_type = 0;
  std::vector<std::int64_t> input_rows;  // first dimension of each input; 0: none
  std::vector<std::int64_t> input_elements;
  std::vector<std::int64_t> input_element_bytes;

  void clear() {
    phase = '\0';
    category = EventCategory::kOther;
    name.clear();
    process.clear();
    thread.clear();
    start.reset();
    duration.reset();
    correlation = external_id = forward_thread = 0;
    address = bytes = device_type = 0;
    input_rows.clear();
    sequence = -1;
    input_elements.clear();
    input_element_bytes.clear();
  }
};

class KinetoReader {
 public:
  KinetoReader(JsonStream& stream, std::string_view layer_prefix)
      : stream_(stream), layer_prefix_(layer_prefix) {
    trace_.file = stream.file();
  }

  KinetoTrace read() {
    bool has_events = false;
    stream_.enter_object();
    while (stream_.next_member()) {
      if (stream_.key() == "deviceProperties") {
        read_list([&] { read_gpu(); });
        continue;
      }
      if (stream_.key() != "traceEvents") {
        stream_.skip();
        continue;
      }
      if (std::exchange(has_events, true)) stream_.fail("`traceEvents` again", "it once");
      stream_.enter_array();
      while (stream_.next_item()) read_event();
    }
    if (!has_events) stream_.fail("no `traceEvents`", "a trace of PyTorch's profiler");
    stream_.finish();
    return std::move(trace_);
  }

 private:
  void read_event() {
    ++trace_.events;
    event_.clear();
    stream_.enter_object();
    while (stream_.next_member()) read_member(stream_.key());
    if (event_.phase == 'X') keep_event();
    if (event_.phase == 'i' && event_.name == "[memory]") keep_memory();
  }

  void read_member(std::string_view key) {
    if (key == "ph") {
      const std::string_view phase = stream_.string();
      event_.phase = phase.size() == 1 ? phase.front() : '\0';
    } else if (key == "cat") {
      event_.category = category_of_event(stream_.string());
    } else if (key == "name") {
      event_.name = stream_.string();
    } else if (key == "pid") {
      read_id(event_.process);
    } else if (key == "tid") {
      read_id(event_.thread);
    } else if (key == "ts") {
      event_.start = read_time();
    } else if (key == "dur") {
      read_duration();
    } else if (key == "args") {
      stream_.enter_object();
      while (stream_.next_member()) read_argument(stream_.key());
    } else {
      stream_.skip();
    }
  }

  void read_argument(std::string_view key) {
    if (key == "External id" || key == "external id") {
      event_.external_id = read_argument_integer();
    } else if (key == "correlation") {
      event_.correlation = read_argument_integer();
    } else if (key == "Sequence number") {
      event_.sequence = read_argument_integer();
    } else if (key == "Fwd thread id") {
      event_.forward_thread = read_argument_integer();
    } else if (key == "Addr") {
      event_.address = read_argument_integer();
    } else if (key == "Bytes") {
      event_.bytes = read_argument_integer();
    } else if (key == "Device Type") {
      event_.device_type = read_argument_integer();
    } else if (key == "Input Dims" && (is_backward_node() || data_input(event_.name))) {
      read_list([this] { read_shape(); });
    } else if (key == "Input type" && is_backward_node()) {
      read_list([this] { event_.input_element_bytes.push_back(element_bytes(stream_.string())); });
    } else {
      stream_.skip();
    }
  }

  // Reads each item of a list. Anything but a list is skipped, for versions differ.
  template <class ReadItem>
  void read_list(ReadItem read_item) {
    if (stream_.peek() != '[') return stream_.skip();
    stream_.enter_array();
    while (stream_.next_item()) read_item();
  }

  // Reads the name of a device. Anything else about it is skipped.
  void read_gpu() {
    if (stream_.peek() != '{') return stream_.skip();
    stream_.enter_object();
    while (stream_.next_member()) {
      if (stream_.key() == "name" && stream_.peek() == '"') {
        trace_.gpus.emplace_back(stream_.string());
      } else {
        stream_.skip();
      }
    }
  }

  bool is_backward_node() const {
    return event_.name.find("Backward") != std::string::npos ||
           event_.name.ends_with("AccumulateGrad");
  }

  // Reads an integer argument. Old versions wrote some arguments as texts, which carry nothing
  // needed.
  std::int64_t read_argument_integer() {
    if (stream_.peek() != '"') return stream_.integer();
    stream_.skip();
    return 0;
  }

  void read_id(std::string& id) {
    const char first = stream_.peek();
    if (first == '"') {
      id = stream_.string();
    } else {
      id = stream_.number();
    }
  }

  std::int64_t read_time() {
    const std::string_view text = stream_.number();
    const auto time = parse_microseconds(text);
    if (!time) stream_.fail(fmt::format("the time {}", text), "microseconds below 2^62 ns");
    return *time;
  }

  void read_duration() {
    event_.duration = read_time();
    if (*event_.duration < 0 || *event_.duration > kLargestQuantity) {
      stream_.fail(fmt::format("a duration of {} ns", *event_.duration),
                   fmt::format("0 to {} ns", kLargestQuantity));
    }
  }

  // Reads the number of elements of an input; 0 for a list of tensors.
  void read_shape() {
    std::int64_t elements = stream_.peek() == '[' ? 1 : 0;
    std::optional<std::int64_t> rows;
    read_list([&] {
      if (stream_.peek() == '[') {
        stream_.skip();
        elements = 0;
        rows = 0;
      } else {
        const std::int64_t size = stream_.integer();
        if (!rows) rows = size;
        elements = times(elements, size);
      }
    });
    event_.input_rows.push_back(rows.value_or(0));
    event_.input_elements.push_back(elements);
  }

  std::int64_t times(std::int64_t a, std::int64_t b) const {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product) || product < 0 || product > kLargestQuantity) {
      stream_.fail("a tensor in `Input Dims` of a size below zero or beyond 2^53",
                   "sizes of tensors");
    }
    return product;
  }

  void keep_event() {
    if (event_.category == EventCategory::kOther) return;
    if (!event_.start) stream_.fail("an event without `ts`", "`ts` in microseconds");
    if (!event_.duration) stream_.fail("an event \"X\" without `dur`", "`dur` in microseconds");
    if (event_.name.find('\\') != std::string::npos) {
      event_.name = stream_.unescaped(event_.name);
    }
    switch (event_.category) {
      case EventCategory::kOther:
        return;
      case EventCategory::kDevice:
        return keep_activity();
      case EventCategory::kCall:
        thread().launches.push_back({*event_.start, event_.correlation});
        return;
      case EventCategory::kOperation:
        if (!keep_range()) keep_operation();
        return;
      case EventCategory::kAnnotation:
      case EventCategory::kPython:
        keep_range();
    }
  }

  // Keeps a range; returns false when the event's name marks nothing.
  bool keep_range() {
    const bool is_layer = event_.name.starts_with(layer_prefix_);
    const std::optional<RangeKind> kind =
        is_layer ? RangeKind::kLayer : kind_of_range(event_.category, event_.name);
    if (!kind) return false;
    thread().ranges.push_back(
        {*event_.start, *event_.duration, trace_.names.number_of(to_one_line(event_.name)), *kind});
    return true;
  }

  void keep_operation() {
    HostThread& thread = this->thread();
    HostOperation operation;
    operation.start = *event_.start;
    operation.duration = *event_.duration;
    operation.sequence = event_.sequence;
    operation.external_id = unsigned_id(event_.external_id, "External id");
    operation.name = trace_.names.number_of(event_.name);
    operation.forward_thread = unsigned_id(event_.forward_thread, "Fwd thread id");
    thread.operations.push_back(operation);
    if (const auto input = data_input(event_.name);
        input && *input < event_.input_rows.size() && event_.input_rows[*input] > 0) {
      thread.rows_read.push_back({operation.start, event_.input_rows[*input]});
    }
    const std::size_t inputs =
        std::min(event_.input_elements.size(), event_.input_element_bytes.size());
    if (inputs == 0) return;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < inputs; ++i) {
      const std::int64_t more = times(event_.input_elements[i], event_.input_element_bytes[i]);
      bytes += more;
      if (bytes > kLargestQuantity) {
        stream_.fail("tensors in `Input Dims` beyond 2^53 bytes", "sizes of tensors");
      }
    }
    thread.node_inputs.push_back({operation.start, bytes});
  }

  void keep_memory() {
    if (!event_.start) stream_.fail("an event without `ts`", "`ts` in microseconds");
    const bool is_possible = event_.bytes >= -kLargestQuantity && event_.bytes <= kLargestQuantity;
    if (!is_possible) stream_.fail("memory of more than 2^53 bytes", "less");
    thread();
    trace_.memory.push_back({*event_.start, event_.address, event_.bytes,
                             static_cast<std::uint32_t>(last_), event_.device_type != 0});
  }

  void keep_activity() {
    const std::string_view name = event_.name;
    const bool is_communication = name.starts_with("nccl");
    trace_.device.push_back({*event_.start, *event_.duration, event_.correlation,
                             unsigned_id(event_.external_id, "External id"), is_communication});
  }

  std::uint32_t unsigned_id(std::int64_t id, const char* argument) const {
    if (id < 0 || id > std::numeric_limits<std::uint32_t>::max()) {
      stream_.fail(fmt::format("the {} {}", argument, id), "0 to 2^32 - 1");
    }
    return static_cast<std::uint32_t>(id);
  }

  // Returns the thread of the event. Neighbouring events are mostly of one thread, so the last one
  // found is tried first.
  HostThread& thread() {
    if (event_.thread != last_thread_ || event_.process != last_process_ ||
        trace_.threads.empty()) {
      last_thread_ = event_.thread;
      last_process_ = event_.process;
      const auto [place, is_new] =
          threads_.try_emplace(event_.process + '\0' + event_.thread, trace_.threads.size());
      if (is_new && trace_.threads.size() == kMostThreads) {
        stream_.fail(fmt::format("more than {} threads", kMostThreads), "fewer");
      }
      if (is_new) trace_.threads.emplace_back();
      last_ = place->second;
    }
    return trace_.threads[last_];
  }

  JsonStream& stream_;
  std::string_view layer_prefix_;
  KinetoTrace trace_;
  RawEvent event_;
  std::unordered_map<std::string, std::size_t> threads_;
  std::string last_process_;
  std::string last_thread_;
  std::size_t last_ = 0;
};

}  // namespace

std::uint32_t NameTable::number_of(std::string_view name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(&numbers_.emplace(name, number).first->first);
  return number;
}

KinetoTrace read_kineto_trace(JsonStream& stream, std::string_view layer_prefix) {
  return KinetoReader(stream, layer_prefix).read();
}

KinetoTrace read_kineto_trace(const std::filesystem::path& path, std::string_view layer_prefix) {
  JsonStream stream(path);
  return read_kineto_trace(stream, layer_prefix);
}

}  // namespace frazil
