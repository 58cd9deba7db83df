#pragma once
// Tells where a measurement was taken: processor, cores, kernel, libtorch, date. It serves as
// provenance.

#include "profiles/model_profile.h"

namespace frazil {

// Returns the keys date, processor, cores, system, torch, mkl_cbwr.
Provenance host_facts();

// Returns the most memory that this process has had resident since its start (VmHWM); 0 if the
// system does not tell.
Bytes peak_resident();

}  // namespace frazil
