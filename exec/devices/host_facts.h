#pragma once
// Where a measurement was taken: processor, cores, kernel, libtorch, date. For provenance.

#include "profiles/model_profile.h"

namespace frazil {

// Keys: date, processor, cores, system, torch, mkl_cbwr.
Provenance host_facts();

// The most memory that this process has had resident since its start (VmHWM); 0 where the system
// does not tell.
Bytes peak_resident();

}  // namespace frazil
