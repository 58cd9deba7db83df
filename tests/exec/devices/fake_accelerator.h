#pragma once
// A plug-in without a GPU: its streams are threads' own cores, and it notes what it is asked. Its
// state is one for the process; a test begins with reset().

#include <dlfcn.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "profiles/error.h"

namespace frazil {

struct FakeCall {
  enum class Kind { kOpen, kClose, kEnter, kAsk, kMark, kSettle };
  Kind kind = Kind::kOpen;
  int stream = -1;  // in the order of open(); of kSettle the GPU
  std::thread::id thread = {};
  bool answer = true;  // of kAsk
};

struct FakeStream {
  int gpu = 0;
  int share = 0;
  int shares = 1;
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
  std::vector<FakeCall> calls;

  void reset() {
    const std::lock_guard<std::mutex> lock(mutex);
    gpus = 1;
    driver_error.clear();
    busy_answers = 0;
    stuck_stream = failing_stream = -1;
    asks_to_failure = 0;
    streams.clear();
    calls.clear();
  }

  int count(FakeCall::Kind kind, int stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    int found = 0;
    for (const FakeCall& call : calls) found += call.kind == kind && call.stream == stream ? 1 : 0;
    return found;
  }
};

// Returns the state of the plug-in in `path`.
inline FakeAccelerator& open_fake(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ENSURE(library != nullptr, "the tests' plug-in loads");
  auto* const state = static_cast<FakeAccelerator*>(::dlsym(library, "fake_accelerator"));
  ENSURE(state != nullptr, "the tests' plug-in has its state");
  return *state;
}

}  // namespace frazil
