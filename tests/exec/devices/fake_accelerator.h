#pragma once
// A plug-in without a GPU: its streams are threads' own cores, and it notes what it is asked. What
// a stream is given is done at once, whatever it should await: an order that has no event is found
// by looking through the notes (tests/exec/devices/stream_order.h). Its state is one for the
// process; a test begins with reset().

#include <dlfcn.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "profiles/error.h"

namespace frazil {

struct FakeCall {
  enum class Kind {
    kOpen,
    kClose,
    kEnter,
    kAsk,
    kMark,
    kSettle,
    kRecord,
    kAwait,
    kAskEvent,
    kUpload,
    kDownload,
    kFetch,
    kRange
  };
  Kind kind = Kind::kOpen;
  int stream = -1;  // in the order of open(); of kSettle the GPU; of kAskEvent the event's
  std::thread::id thread = {};
  bool answer = true;            // of kAsk and kAskEvent
  int event = -1;                // in the order of record()
  const void* memory = nullptr;  // of kMark: the tensor's
  std::string text = {};         // of kRange
};

struct FakeStream {
  int gpu = 0;
  int share = 0;
  int shares = 1;
};

struct FakeEvent {
  int stream = -1;
  std::chrono::steady_clock::time_point time;
  bool is_timed = false;
  bool is_dropped = false;
  int not_yet = 0;  // answers
};

struct FakeAccelerator {
  std::mutex mutex;  // guards all below
  int gpus = 1;
  std::string driver_error;
  int busy_answers = 0;     // "not yet" so many times before each "done"
  int stuck_stream = -1;    // never done
  int failing_stream = -1;  // throws when asked ...
  int asks_to_failure = 0;  // ... so many times
  std::vector<FakeStream> streams;
  std::vector<FakeEvent> events;
  std::vector<FakeCall> calls;
  std::function<void(const FakeCall&)> on_call;

  void reset() {
    const std::lock_guard<std::mutex> lock(mutex);
    gpus = 1;
    driver_error.clear();
    busy_answers = 0;
    stuck_stream = failing_stream = -1;
    asks_to_failure = 0;
    streams.clear();
    events.clear();
    calls.clear();
    on_call = {};
  }

  int count(FakeCall::Kind kind, int stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    int found = 0;
    for (const FakeCall& call : calls) found += call.kind == kind && call.stream == stream ? 1 : 0;
    return found;
  }

  int count_held_events() {
    const std::lock_guard<std::mutex> lock(mutex);
    int held = 0;
    for (const FakeEvent& event : events) held += event.is_dropped ? 0 : 1;
    return held;
  }
};

// Returns a function or variable of the plug-in in `path`.
template <class Symbol>
Symbol* find_in_fake(const std::string& path, const char* name) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ENSURE(library != nullptr, "the tests' plug-in loads");
  auto* const symbol = reinterpret_cast<Symbol*>(::dlsym(library, name));
  ENSURE(symbol != nullptr, "the tests' plug-in has what tests ask for");
  return symbol;
}

// Returns the state of the plug-in in `path`.
inline FakeAccelerator& open_fake(const std::string& path) {
  return *find_in_fake<FakeAccelerator>(path, "fake_accelerator");
}

// Returns the function that tells the stream of the calling thread, -1 if it has entered none.
inline int (*find_current_stream(const std::string& path))() {
  return find_in_fake<int()>(path, "fake_current_stream");
}

}  // namespace frazil
