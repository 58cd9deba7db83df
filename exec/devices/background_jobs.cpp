#include "exec/devices/background_jobs.h"

#include <utility>

#include "exec/devices/start_thread.h"

namespace frazil {

BackgroundJobs::BackgroundJobs(bool in_background) {
  if (in_background) thread_ = start_thread([this] { run(); });
}

BackgroundJobs::~BackgroundJobs() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundJobs::rethrow() {
  if (failure_) std::rethrow_exception(failure_);
}

void BackgroundJobs::start(Job job) {
  if (!thread_.joinable()) return job();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    rethrow();
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void BackgroundJobs::check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  rethrow();
}

void BackgroundJobs::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty(); });
  rethrow();
}

void BackgroundJobs::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    const Job job = jobs_.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      failure_ = failure;
      jobs_.clear();
    } else {
      jobs_.pop_front();
    }
    changed_.notify_all();
  }
}

}  // namespace frazil
