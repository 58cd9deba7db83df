#include "exec/devices/load_plugin.h"

#include <dlfcn.h>

#include <system_error>

#include "profiles/error.h"

namespace frazil {

std::filesystem::path plugin_of_this_build(const std::string& file) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / file;
}

void* open_plugin(const std::filesystem::path& plugin, const std::string& symbol,
                  const PluginWords& words) {
  const std::string path = plugin.string();
  if (!std::filesystem::exists(plugin)) {
    throw InputError(words.asked_by, 0, "no plug-in " + path, words.built_how);
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const told = ::dlerror();
    throw InputError(words.asked_by, 0,
                     "a plug-in that does not load: " + to_one_line(told == nullptr ? path : told),
                     words.needs);
  }
  void* const function = ::dlsym(library, symbol.c_str());
  if (function == nullptr) {
    throw InputError(words.asked_by, 0, "that " + path + " has no " + symbol,
                     "the plug-in of this build");
  }
  return function;
}

void check_plugin_version(const std::filesystem::path& plugin, int found, int expected,
                          const PluginWords& words) {
  if (found == expected) return;
  throw InputError(words.asked_by, 0,
                   "plug-in " + plugin.string() + " of version " + std::to_string(found),
                   "version " + std::to_string(expected) + "; build all of Frazil again");
}

}  // namespace frazil
