#pragma once
// Keeps CUDA events for as long as the process lives, because making one costs more than recording
// one. An event that was given back may be recorded again: what awaits its earlier point goes on
// doing so.

#include <driver_types.h>

#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace frazil {

struct GpuEvent {
  int gpu = 0;
  bool is_timed = false;
  cudaEvent_t event = nullptr;
};

// Any thread may use it.
class EventPool {
 public:
  // Takes an event of a GPU. Throws c10::Error with CUDA's words.
  GpuEvent* take(int gpu, bool is_timed);
  void give_back(GpuEvent* event);

 private:
  std::mutex mutex_;
  std::list<GpuEvent> all_;  // a list, for stable addresses
  std::map<std::pair<int, bool>, std::vector<GpuEvent*>> free_;
};

}  // namespace frazil
