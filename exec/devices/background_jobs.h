#pragma once
// Jobs done one after another in a thread of their own while training goes on.
// After one that has thrown none is done any more.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace frazil {

class BackgroundJobs {
 public:
  using Job = std::function<void()>;

  // Not in the background: start() does the job itself.
  explicit BackgroundJobs(bool in_background);
  // Ends after the job in hand; those that wait are dropped.
  ~BackgroundJobs();
  BackgroundJobs(const BackgroundJobs&) = delete;
  BackgroundJobs& operator=(const BackgroundJobs&) = delete;

  // All throw what a job has thrown.
  void start(Job job);
  void wait();  // until none is left
  void check();

 private:
  void run();
  void rethrow();

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first one is in hand
  std::exception_ptr failure_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace frazil
