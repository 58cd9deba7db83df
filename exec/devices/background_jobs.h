#pragma once
// Does jobs one after another in a thread of its own while training goes on. After a job that has
// thrown no further job is done.

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

  // If not in the background, start() does the job itself.
  explicit BackgroundJobs(bool in_background);
  // Ends after the job in hand; jobs that wait are dropped.
  ~BackgroundJobs();
  BackgroundJobs(const BackgroundJobs&) = delete;
  BackgroundJobs& operator=(const BackgroundJobs&) = delete;

  // All three throw what a job has thrown.
  void start(Job job);
  void wait();  // until no job is left
  void check();

 private:
  void run();
  void rethrow();

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first one is in hand
  std::exception_ptr failure_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace frazil
