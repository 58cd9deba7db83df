#include "tests/exec/devices/fake_accelerator.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <stdexcept>

#include "exec/devices/accelerator.h"

#ifndef FAKE_VERSION
#define FAKE_VERSION frazil::kAcceleratorVersion
#endif

namespace {
thread_local int current_stream = -1;
}

extern "C" {
frazil::FakeAccelerator fake_accelerator;
int fake_current_stream() { return current_stream; }
}

namespace frazil {
namespace {

using Kind = FakeCall::Kind;

int index_of(StreamHandle handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1;
}

FakeCall make_call(Kind kind, int stream) {
  FakeCall call;
  call.kind = kind;
  call.stream = stream;
  call.thread = std::this_thread::get_id();
  return call;
}

void note(const FakeCall& call) {
  fake_accelerator.calls.push_back(call);
  if (fake_accelerator.on_call) fake_accelerator.on_call(call);
}

void note(Kind kind, int stream) { note(make_call(kind, stream)); }

// Puts the calling thread on a stream for as long as it lives.
class OnStream {
 public:
  explicit OnStream(int stream) : before_(current_stream) { current_stream = stream; }
  ~OnStream() { current_stream = before_; }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  int before_;
};

void fail_if_due(int stream) {
  FakeAccelerator& fake = fake_accelerator;
  if (stream == fake.failing_stream && --fake.asks_to_failure <= 0) {
    throw std::runtime_error("an illegal memory access was encountered");
  }
}

int count_gpus() {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  if (!fake_accelerator.driver_error.empty()) {
    throw std::runtime_error(fake_accelerator.driver_error);
  }
  return fake_accelerator.gpus;
}

GpuFacts describe(int gpu) {
  return {.name = "Fake " + std::to_string(gpu),
          .memory_bytes = std::int64_t{8} << 30,
          .multiprocessors = 16,
          .driver = "none"};
}

GpuMemory memory(int /*gpu*/) { return {}; }

StreamHandle open(int gpu, int share, int shares) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  note(Kind::kOpen, static_cast<int>(fake_accelerator.streams.size()));
  fake_accelerator.streams.push_back({gpu, share, shares});
  return reinterpret_cast<StreamHandle>(fake_accelerator.streams.size());
}

void close(StreamHandle handle) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  note(Kind::kClose, index_of(handle));
}

std::string part(StreamHandle /*handle*/) { return "8 SMs each"; }

at::Device place(StreamHandle /*handle*/) { return at::kCPU; }

void enter(StreamHandle handle) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  note(Kind::kEnter, index_of(handle));
  current_stream = index_of(handle);
}

bool is_idle(StreamHandle handle) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  FakeAccelerator& fake = fake_accelerator;
  const int stream = index_of(handle);
  fail_if_due(stream);
  int not_yet = 0;  // since this stream was last done
  for (auto call = fake.calls.rbegin(); call != fake.calls.rend(); ++call) {
    if (call->kind != Kind::kAsk || call->stream != stream) continue;
    if (call->answer) break;
    ++not_yet;
  }
  FakeCall call = make_call(Kind::kAsk, stream);
  call.answer = stream != fake.stuck_stream && not_yet >= fake.busy_answers;
  note(call);
  return call.answer;
}

void mark(StreamHandle handle, const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  if (!tensor.defined()) throw std::logic_error("a mark on no tensor");
  FakeCall call = make_call(Kind::kMark, index_of(handle));
  call.memory = tensor.storage().unsafeGetStorageImpl();
  note(call);
}

bool is_settled(int gpu) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  note(Kind::kSettle, gpu);
  return true;
}

int index_of_event(EventHandle handle) { return index_of(handle); }

EventHandle record(StreamHandle handle, bool is_timed) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  FakeCall call = make_call(Kind::kRecord, index_of(handle));
  call.event = static_cast<int>(fake_accelerator.events.size());
  fake_accelerator.events.push_back(
      {call.stream, std::chrono::steady_clock::now(), is_timed, false, 0});
  note(call);
  return reinterpret_cast<EventHandle>(fake_accelerator.events.size());
}

void await(StreamHandle handle, EventHandle event) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  FakeCall call = make_call(Kind::kAwait, index_of(handle));
  call.event = index_of_event(event);
  note(call);
}

bool has_passed(EventHandle handle) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  FakeAccelerator& fake = fake_accelerator;
  FakeEvent& event = fake.events.at(static_cast<std::size_t>(index_of_event(handle)));
  fail_if_due(event.stream);
  FakeCall call = make_call(Kind::kAskEvent, event.stream);
  call.event = index_of_event(handle);
  call.answer = event.stream != fake.stuck_stream && event.not_yet++ >= fake.busy_answers;
  note(call);
  return call.answer;
}

std::int64_t time_between(EventHandle first, EventHandle second) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  const std::vector<FakeEvent>& events = fake_accelerator.events;
  const FakeEvent& from = events.at(static_cast<std::size_t>(index_of_event(first)));
  const FakeEvent& to = events.at(static_cast<std::size_t>(index_of_event(second)));
  if (!from.is_timed || !to.is_timed) throw std::logic_error("an event without a time");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to.time - from.time).count();
}

void drop(EventHandle handle) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  // A test may have begun anew while an event was held.
  const auto event = static_cast<std::size_t>(index_of_event(handle));
  if (event >= fake_accelerator.events.size()) return;
  fake_accelerator.events[event].is_dropped = true;
}

at::Tensor copy(Kind kind, StreamHandle handle, const at::Tensor& tensor) {
  {
    const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
    note(kind, index_of(handle));
  }
  const OnStream on_stream(index_of(handle));
  return tensor.clone();
}

at::Tensor upload(StreamHandle handle, const at::Tensor& tensor) {
  return copy(Kind::kUpload, handle, tensor);
}

at::Tensor download(StreamHandle handle, const at::Tensor& tensor) {
  return copy(Kind::kDownload, handle, tensor);
}

at::Tensor fetch(StreamHandle handle, const at::Tensor& tensor) {
  return copy(Kind::kFetch, handle, tensor);
}

void begin_range(const char* text) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  FakeCall call = make_call(Kind::kRange, current_stream);
  call.text = text;
  note(call);
}

void end_range() {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  note(Kind::kRange, current_stream);
}

}  // namespace
}  // namespace frazil

extern "C" const frazil::AcceleratorTable* frazil_accelerator() {
  static const frazil::AcceleratorTable table{.version = FAKE_VERSION,
                                              .count_gpus = frazil::count_gpus,
                                              .describe = frazil::describe,
                                              .memory = frazil::memory,
                                              .open = frazil::open,
                                              .close = frazil::close,
                                              .part = frazil::part,
                                              .place = frazil::place,
                                              .enter = frazil::enter,
                                              .is_idle = frazil::is_idle,
                                              .mark = frazil::mark,
                                              .is_settled = frazil::is_settled,
                                              .record = frazil::record,
                                              .await = frazil::await,
                                              .has_passed = frazil::has_passed,
                                              .time_between = frazil::time_between,
                                              .drop = frazil::drop,
                                              .upload = frazil::upload,
                                              .download = frazil::download,
                                              .fetch = frazil::fetch,
                                              .begin_range = frazil::begin_range,
                                              .end_range = frazil::end_range};
  return &table;
}
