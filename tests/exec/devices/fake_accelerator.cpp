#include "tests/exec/devices/fake_accelerator.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>

#include "exec/devices/accelerator.h"

#ifndef FAKE_VERSION
#define FAKE_VERSION frazil::kAcceleratorVersion
#endif

extern "C" {
frazil::FakeAccelerator fake_accelerator;
}

namespace frazil {
namespace {

using Kind = FakeCall::Kind;

int index_of(StreamHandle handle) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)) - 1;
}

void note(Kind kind, int stream) {
  fake_accelerator.calls.push_back({kind, stream, std::this_thread::get_id(), true});
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
}

bool is_idle(StreamHandle handle) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  FakeAccelerator& fake = fake_accelerator;
  const int stream = index_of(handle);
  if (stream == fake.failing_stream && --fake.asks_to_failure <= 0) {
    throw std::runtime_error("an illegal memory access was encountered");
  }
  int not_yet = 0;  // since this stream was last done
  for (auto call = fake.calls.rbegin(); call != fake.calls.rend(); ++call) {
    if (call->kind != Kind::kAsk || call->stream != stream) continue;
    if (call->answer) break;
    ++not_yet;
  }
  note(Kind::kAsk, stream);
  fake.calls.back().answer = stream != fake.stuck_stream && not_yet >= fake.busy_answers;
  return fake.calls.back().answer;
}

void mark(StreamHandle handle, const at::Tensor& tensor) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  if (!tensor.defined()) throw std::logic_error("a mark on no tensor");
  note(Kind::kMark, index_of(handle));
}

bool is_settled(int gpu) {
  const std::lock_guard<std::mutex> lock(fake_accelerator.mutex);
  note(Kind::kSettle, gpu);
  return true;
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
                                              .is_settled = frazil::is_settled};
  return &table;
}
