#pragma once
// A program in force on the devices of a pool (exec/run/device_pool.h).

#include <memory>
#include <string>
#include <vector>

#include "exec/program/step_program.h"
#include "exec/run/executor.h"

namespace frazil {

struct PoolProgram {
  StepProgram step;
  std::string note;  // what it runs instead of the plan's own schedule, and why
  std::vector<std::unique_ptr<Executor>> executors;  // by device of the process
};

}  // namespace frazil
