#pragma once
// Of the threads that wait for something to come over the links of a process, one at a time reads
// for all, and the others sleep. Who stops reading calls one of the sleepers to read on.

#include <condition_variable>
#include <mutex>
#include <vector>

namespace frazil {

// A thread that sleeps with `mutex` and `wake`. Whoever fulfils what it waits for notifies `wake`.
struct Sleeper {
  std::mutex* mutex;
  std::condition_variable* wake;
  bool is_called = false;  // to read on; guarded by *mutex
};

// No caller holds a sleeper's mutex.
class ReaderRole {
 public:
  // Returns true if the caller reads from here on. Otherwise the sleeper is on the list until
  // leave_list().
  bool take_or_list(Sleeper& sleeper);
  bool try_take();
  // Stops reading; calls a sleeper on the list.
  void give_back();
  // A call that the sleeper has not followed, for what it waited for has come, goes to another one.
  void leave_list(Sleeper& sleeper, bool follows);

 private:
  void call_one();

  std::mutex mutex_;  // guards all below; taken before a sleeper's
  bool is_taken_ = false;
  std::vector<Sleeper*> sleepers_;
};

}  // namespace frazil
