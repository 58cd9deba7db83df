#pragma once
// Where a measurement was taken: processor, cores, kernel, libtorch, date. For provenance.

#include "profiles/model_profile.h"

namespace frazil {

// Keys: date, processor, cores, system, torch, mkl_cbwr.
Provenance host_facts();

}  // namespace frazil
