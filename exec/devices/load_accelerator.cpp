#include "exec/devices/load_accelerator.h"

#include "exec/devices/load_plugin.h"

namespace frazil {

std::filesystem::path default_plugin() { return plugin_of_this_build("libfrazil_cuda.so"); }

const AcceleratorTable& load_accelerator(const std::filesystem::path& plugin) {
  const PluginWords words = {
      .asked_by = "--device cuda",
      .built_how =
          "one built where CMake finds the CUDA toolkit and a libtorch with CUDA (run ./setup.sh "
          "and build again there), or --device cpu",
      .needs =
          "all libraries of torch 2.11 for CUDA 13 where they were built against, or --device cpu"};
  const auto function =
      reinterpret_cast<AcceleratorFunction>(open_plugin(plugin, kAcceleratorSymbol, words));
  const AcceleratorTable* const table = function();
  check_plugin_version(plugin, table->version, kAcceleratorVersion, words);
  return *table;
}

}  // namespace frazil
