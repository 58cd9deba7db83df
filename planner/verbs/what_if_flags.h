#pragma once
// Adds and reads the flags of a what-if, which several subcommands take: --stages, --micro-batches,
// --schedule, --forward and the others that describe_what_if() adds.

#include <optional>
#include <string>

#include "planner/verbs/flags.h"
#include "planner/what_if/what_if.h"

namespace frazil {

void describe_what_if(boost::program_options::options_description& flags);

// Refuses a name that is no schedule's, and suggests the nearest one.
[[noreturn]] void refuse_schedule(const std::string& flag, const std::string& name,
                                  const char* verb);

// Returns the schedule that --schedule names, in any case. Throws InputError.
ScheduleKind read_schedule(const Flags& flags);

// The schedule within whose memory --schedule search looks: K micro-batches, p unless --in-flight
// says it, half of one free after I.
inline constexpr ScheduleKind kSearchedWithin = ScheduleKind::kZb1p;

// Returns how the order is searched if --schedule is search, else none. Throws InputError, also if
// a flag of the search is given without --schedule search.
std::optional<OrderSearchOptions> read_search(const Flags& flags);

// Reads a what-if. `otherwise`: the time of F, of I and of W that no flag gives; none: each must be
// given. `any_schedule`: --schedule need not be given. Throws InputError.
WhatIf read_what_if(const Flags& flags, std::optional<Duration> otherwise,
                    bool any_schedule = false);

}  // namespace frazil
