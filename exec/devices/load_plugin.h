#pragma once
// Opens a shared object that exports one C function, as the plug-ins of this project do. Once
// opened it stays.

#include <filesystem>
#include <string>

namespace frazil {

// What is said of a plug-in that cannot be had.
struct PluginWords {
  std::string asked_by;   // "--device cuda"
  std::string built_how;  // expected where there is no file
  std::string needs;      // expected where the file does not load
};

// Returns where the build puts a plug-in: ../lib/`file` as seen from the running program.
std::filesystem::path plugin_of_this_build(const std::string& file);

// Returns the address of the function `symbol`. Throws InputError, one sentence each: there is no
// such file, it does not load (with the loader's words), it has no such function.
void* open_plugin(const std::filesystem::path& plugin, const std::string& symbol,
                  const PluginWords& words);
// Throws InputError unless the plug-in's version is the one that this program was built with.
void check_plugin_version(const std::filesystem::path& plugin, int found, int expected,
                          const PluginWords& words);

}  // namespace frazil
