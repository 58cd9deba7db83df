#pragma once
// The flags of a what-if, which several verbs take: --stages, --micro-batches, --schedule,
// --forward and the rest of the design page's command line.

#include <optional>

#include "planner/verbs/flags.h"
#include "planner/what_if/what_if.h"

namespace frazil {

void describe_what_if(boost::program_options::options_description& flags);

// The schedule that --schedule names. Throws InputError.
ScheduleKind read_schedule(const Flags& flags);

// What --schedule search holds: K micro-batches, p unless --in-flight says it, half of one free
// after I.
inline constexpr ScheduleKind kSearchedWithin = ScheduleKind::kZb1p;

// How its order is searched, where --schedule is search. Throws InputError, also where a flag of
// the search stands without it.
std::optional<OrderSearchOptions> read_search(const Flags& flags);

// `otherwise`: the time of F, of I and of W where no flag says it; none: each must be given.
// `any_schedule`: none need be named. Throws InputError.
WhatIf read_what_if(const Flags& flags, std::optional<Duration> otherwise,
                    bool any_schedule = false);

}  // namespace frazil
