#include "exec/devices/start_thread.h"

#include <pthread.h>
#include <sys/mman.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "exec/devices/step_fault.h"

namespace frazil {
namespace {

// The system tells neither a limit on threads from a lack of memory. Whether there is room for a
// stack is found out by taking some.
bool is_room_for_stack() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (pthread_attr_init(&attributes) != 0) return false;
  const bool is_known = pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes > 0;
  pthread_attr_destroy(&attributes);
  if (!is_known) return true;
  void* const stack = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return false;
  munmap(stack, bytes);
  return true;
}

}  // namespace

std::thread start_thread(std::function<void()> job) {
  try {
    return std::thread(std::move(job));
  } catch (const std::system_error& error) {
    if (!is_room_for_stack()) {
      throw OutOfMemory("cannot start a thread: no memory for its stack");
    }
    throw std::runtime_error("cannot start a thread: " + error.code().message() +
                             "; the limit on processes and threads may be too low");
  }
}

std::vector<std::thread> start_threads(int count,
                                       const std::function<std::function<void()>(int)>& make_job,
                                       const std::function<void()>& stop) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i) threads.push_back(start_thread(make_job(i)));
  } catch (...) {
    stop();
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  return threads;
}

}  // namespace frazil
