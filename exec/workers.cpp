#include "exec/workers.h"

#include <ATen/Parallel.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace frazil {

struct Workers::Shared {
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable idle;
  const std::function<void(DeviceId)>* job = nullptr;
  const std::function<void(const std::string&)>* on_failure = nullptr;
  std::uint64_t round = 0;
  int running = 0;
  bool stop = false;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void serve(DeviceId device);
  void fail();
};

namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // Pinning is a matter of speed alone; where it is forbidden the run goes on unpinned.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// A thread takes the process-wide number of threads at its first use, whatever it set before; so
// the first use comes first.
void use_one_intra_op_thread() {
  (void)at::get_num_threads();
  at::set_num_threads(1);
}

}  // namespace

void Workers::Shared::serve(DeviceId device) {
  std::uint64_t seen = 0;
  for (;;) {
    const std::function<void(DeviceId)>* current = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex);
      work.wait(lock, [&] { return stop || round != seen; });
      if (stop) return;
      seen = round;
      current = job;
    }
    try {
      (*current)(device);
    } catch (...) {
      fail();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    if (--running == 0) idle.notify_all();
  }
}

void Workers::Shared::fail() {
  std::string sentence = "a device failed";
  try {
    throw;
  } catch (const std::exception& error) {
    sentence = error.what();
  } catch (...) {
    sentence = "a device failed for an unknown reason";
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (failure) return;
    failure = std::current_exception();
  }
  if (on_failure != nullptr && *on_failure) (*on_failure)(sentence);
}

Workers::Workers(int devices) : shared_(std::make_unique<Shared>()) {
  const std::vector<int> cores = allowed_cores();
  for (int d = 0; d < devices; ++d) {
    const bool own_core = static_cast<std::size_t>(devices) <= cores.size();
    const int core = own_core ? cores[static_cast<std::size_t>(d)] : -1;
    shared_->threads.emplace_back([shared = shared_.get(), d, core] {
      if (core >= 0) pin_to(core);
      use_one_intra_op_thread();
      shared->serve(DeviceId{d});
    });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->work.notify_all();
  for (std::thread& thread : shared_->threads) thread.join();
}

int Workers::devices() const { return static_cast<int>(shared_->threads.size()); }

void Workers::run(const std::function<void(DeviceId)>& job,
                  const std::function<void(const std::string&)>& on_failure) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->job = &job;
  shared_->on_failure = &on_failure;
  shared_->failure = nullptr;
  shared_->running = devices();
  ++shared_->round;
  shared_->work.notify_all();
  shared_->idle.wait(lock, [&] { return shared_->running == 0; });
  if (shared_->failure) std::rethrow_exception(shared_->failure);
}

}  // namespace frazil
