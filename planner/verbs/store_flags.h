#pragma once
// The flags that say where a forecast may keep features of the frozen prefix.

#include <optional>

#include "planner/transitions/feature_store.h"
#include "planner/verbs/flags.h"

namespace frazil {

// Adds --samples, and of each tier --cache-TIER, --cache-TIER-bandwidth and --cache-TIER-latency.
void add_store_flags(boost::program_options::options_description& flags);
// None where no tier is given. Throws InputError where one is and not the samples, or the other way
// round, a tier without room, or a speed of a tier that is not given.
std::optional<FeatureStore> read_store(const Flags& values);
// Throws InputError where any of them is given.
void refuse_store_flags(const Flags& values, const char* without);

}  // namespace frazil
