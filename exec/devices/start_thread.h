#pragma once
// Starts threads, and tells in one sentence why the system gives none.

#include <functional>
#include <thread>
#include <vector>

namespace frazil {

// Starts a thread that does the job. Throws OutOfMemory (exit code 7) if there is no memory for its
// stack, else std::runtime_error (exit code 1): "cannot start a thread: ...", with what the system
// says.
std::thread start_thread(std::function<void()> job);

// Starts `count` threads, the n-th for make_job(n). If one cannot be started, calls `stop`, which
// must end those that run, joins them, and throws as start_thread() does.
std::vector<std::thread> start_threads(int count,
                                       const std::function<std::function<void()>(int)>& make_job,
                                       const std::function<void()>& stop);

}  // namespace frazil
