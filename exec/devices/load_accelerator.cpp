#include "exec/devices/load_accelerator.h"

#include <dlfcn.h>

#include <system_error>

#include "profiles/error.h"

namespace frazil {

std::filesystem::path default_plugin() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "libfrazil_cuda.so";
}

const AcceleratorTable& load_accelerator(const std::filesystem::path& plugin) {
  const std::string path = plugin.string();
  const auto refuse = [](const std::string& found, const std::string& expected) {
    throw InputError("--device cuda", 0, found, expected);
  };
  if (!std::filesystem::exists(plugin)) {
    refuse("no plug-in " + path,
           "one built where CMake finds the CUDA toolkit and a libtorch with CUDA (run ./setup.sh "
           "and build again there), or --device cpu");
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = ::dlerror();
    refuse("a plug-in that does not load: " + to_one_line(words == nullptr ? path : words),
           "all libraries of torch 2.11 for CUDA 13 where they were built against, or --device "
           "cpu");
  }
  const auto function = reinterpret_cast<AcceleratorFunction>(::dlsym(library, kAcceleratorSymbol));
  if (function == nullptr) {
    refuse("that " + path + " has no " + kAcceleratorSymbol, "the plug-in of this build");
  }
  const AcceleratorTable* const table = function();
  if (table->version != kAcceleratorVersion) {
    refuse("plug-in " + path + " of version " + std::to_string(table->version),
           "version " + std::to_string(kAcceleratorVersion) + "; build all of Frazil again");
  }
  return *table;
}

}  // namespace frazil
