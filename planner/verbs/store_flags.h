#pragma once
// Adds and reads the flags that say where a forecast may keep features of the frozen prefix.

#include <optional>

#include "planner/transitions/feature_store.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Adds --samples, and for each tier --cache-TIER, --cache-TIER-bandwidth and --cache-TIER-latency.
void add_store_flags(boost::program_options::options_description& flags);
// Returns none if neither a tier nor --samples is given. Throws InputError if only one of the two
// is given, for a tier without room, and for the speed of a tier that is not given.
std::optional<FeatureStore> read_store(const Flags& values);
// Throws InputError if any of these flags is given; `without` is the flag that it needs.
void refuse_store_flags(const Flags& values, const char* without);

}  // namespace frazil
