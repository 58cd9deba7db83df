#pragma once
// Tells whether the messages of a plan's step come through, for each way in which programs hand
// messages to a transport (MessageLowering in planner/actions/deadlock.h): whether no SEND or RECV
// waits for ever or meets another message.

#include <string>

#include "planner/plan/plan.h"
#include "profiles/setting.h"

namespace frazil {

// Return the answer for each way: none, or what find_deadlock() says. Throw InfeasibleError if the
// plan's schedule cannot be made (planner/schedules/make_schedule.h, planner/actions/schedule.h).
//
// As lines: "messages, just in time: device 0 waits at ..." or "messages, grouped: come through".
std::string print_messages(const Plan& plan, Setting setting);
// As one line of JSON, without a line end; null: they come through.
//   {"messages":{"eager receive":null,"just in time":"device 0 waits ...","grouped":null}}
std::string messages_json(const Plan& plan, Setting setting);

}  // namespace frazil
