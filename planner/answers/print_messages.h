#pragma once
// Prints whether the messages of a plan's step come through under each lowering, in words and as
// JSON.

#include <string>

#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Returns a line per lowering: "messages, just in time: device 0 waits at ..." or "... come
// through".
std::string print_messages(const Plan& plan, Setting setting);
// Returns
//   {"messages": {"eager receive": null, "just in time": "device 0 waits ...", "grouped": null}}
std::string messages_json(const Plan& plan, Setting setting);

}  // namespace frazil
