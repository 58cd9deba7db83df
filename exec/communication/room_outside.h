#pragma once
// What a mailbox room needs where some ranks of its world live in other processes: how a rank waits
// so that what they send comes in, and how they are told why the world ends. All empty: every rank
// is here.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "exec/communication/world_cause.h"
#include "profiles/units.h"

namespace frazil {

struct RoomOutside {
  std::vector<bool> is_here = {};  // by rank; empty: all
  // Returns at once; takes in what has come.
  std::function<void()> look = {};
  // Waits until is_over(), asked with the mutex locked, or for `limit`. Returns is_over(). What
  // makes it true notifies the variable and calls nudge().
  std::function<bool(std::mutex&, std::condition_variable&, const std::function<bool()>& is_over,
                     Duration limit)>
      wait = {};
  std::function<void()> nudge = {};
  // The world has just been aborted from here.
  std::function<void(const WorldCause&)> tell = {};
  // Returns when all processes have one cause, which is given to the room by adopt(). Called before
  // the cause is thrown.
  std::function<void()> settle = {};
};

}  // namespace frazil
