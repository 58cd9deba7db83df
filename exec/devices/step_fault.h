#pragma once
// An error inside a step, told as one sentence that names where: "rank 1, step 17, action 1B3:
// ...". Its type, and so the program's exit code, stays.

#include <new>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/units.h"
#include "traces/action.h"

namespace frazil {

// Where a rank is in its step. Text is made only when all is lost.
struct StepPlace {
  int rank = 0;
  Step step = 0;
  const Action* action = nullptr;  // none: before the first one
};

// Exit code 7, with the sentence that a plain std::bad_alloc cannot hold.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string sentence) : sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

// The rank's own device has not done its work. Exit code 6.
class DeviceLost : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

// Only in a catch block. Throws what is caught again, with its place: an InfeasibleError stays one,
// std::bad_alloc and torch's failed allocations become OutOfMemory, std::logic_error stays one,
// anything else becomes std::runtime_error. A PeerLost that is no DeviceLost goes on as it is: it
// names the rank, step and message that are its cause, which may be another rank's. So does an
// InputError.
[[noreturn]] void rethrow_at(const StepPlace& place);

}  // namespace frazil
