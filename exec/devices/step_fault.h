#pragma once
// Tells an error inside a step as one sentence that names where: "rank 1, step 17, action 1B3:
// ...". Its type, and so the program's exit code, stays.

#include <new>
#include <string>
#include <utility>

#include "profiles/error.h"
#include "profiles/units.h"
#include "traces/action.h"

namespace frazil {

// The place of a rank in its step. The text is made only when an error is told.
struct StepPlace {
  int rank = 0;
  Step step = 0;
  const Action* action = nullptr;  // none: before the first one
};

// Ends the program with exit code 7, and has the sentence that a plain std::bad_alloc cannot hold.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string sentence) : sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

// The rank's own device has not done its work (exit code 6).
class DeviceLost : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

// Throws again what is caught, with its place; call it in a catch block only. An InfeasibleError
// stays one, std::bad_alloc and torch's failed allocations become OutOfMemory, std::logic_error
// stays one, anything else becomes std::runtime_error. A PeerLost that is no DeviceLost goes on as
// it is: it names the rank, step and message that are its cause, which may be another rank's. An
// InputError goes on as it is, too.
[[noreturn]] void rethrow_at(const StepPlace& place);

// Throws again what is caught outside a step; call it in a catch block only. torch's failed
// allocations become OutOfMemory, its other errors std::runtime_error, both in one sentence without
// a backtrace. Anything else stays what it is.
[[noreturn]] void rethrow_told();

}  // namespace frazil
