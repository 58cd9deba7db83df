#pragma once
// The kind of run that a test program is about: over threads of one process, or, where
// FRAZIL_OVER_PROCESSES is defined, over processes.

#include "exec/run/run.h"
#include "tests/exec/support/process_run.h"

namespace frazil {

#ifdef FRAZIL_OVER_PROCESSES
using TestRun = ProcessRun;
#else
using TestRun = Run;
#endif

}  // namespace frazil
