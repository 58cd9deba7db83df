#pragma once
// Finds and opens the plug-in for GPUs. Once opened it stays.

#include <filesystem>

#include "exec/devices/accelerator.h"

namespace frazil {

// Returns where the build puts the plug-in: ../lib/libfrazil_cuda.so as seen from the running
// program.
std::filesystem::path default_plugin();

// Opens the plug-in and returns its table. Throws InputError, one sentence each: there is no such
// file, it does not load (with the loader's words), it is no plug-in, it is of another version.
// Requires: the process has run no backward pass yet, for torch looks for CUDA once.
const AcceleratorTable& load_accelerator(const std::filesystem::path& plugin = default_plugin());

}  // namespace frazil
