#pragma once
// Reading what a verb's command line says. Everything here throws InputError{"command line"}, which
// names the flag, what it was given and what was expected.

#include <boost/program_options.hpp>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "profiles/units.h"

namespace frazil {

using Flags = boost::program_options::variables_map;

inline constexpr int kMostCounted = 1'000'000;  // of anything that a flag counts

[[noreturn]] void refuse_flags(const std::string& found, const std::string& expected);

std::optional<std::string> optional_text(const Flags& flags, const std::string& name);
std::string required_text(const Flags& flags, const std::string& name);
std::optional<int> optional_integer(const Flags& flags, const std::string& name, int minimum,
                                    int maximum);
int integer_or(const Flags& flags, const std::string& name, int fallback, int minimum, int maximum);
int required_integer(const Flags& flags, const std::string& name, int minimum, int maximum);
Duration duration_or(const Flags& flags, const std::string& name, Duration fallback);
// "2.5" percent is 25000 parts per million: up to four decimals, 0 to 100.
std::int64_t required_percent_ppm(const Flags& flags, const std::string& name);
// The values of a flag that may be repeated; none when it was not given.
std::vector<std::string> text_list(const Flags& flags, const std::string& name);
bool is_set(const Flags& flags, const std::string& name);  // of a switch

// A flag's integer in [minimum, maximum]; of a comma list, all, none twice.
int checked_flag(const std::string& flag, const std::string& value, int minimum, int maximum);
std::vector<int> checked_flags(const std::string& flag, const std::string& comma_list, int minimum,
                               int maximum);

// Refuses any of `others` beside `mode`, which is written as it was given ("--stages").
void refuse_together(const Flags& flags, const std::string& mode,
                     std::initializer_list<const char*> others);

// A file as the command line names it; `flag` is for refusals ("--out").
struct NamedFile {
  std::string flag;
  std::filesystem::path path;
};

// Those of `names` that are given.
std::vector<NamedFile> named_files(const Flags& flags, std::initializer_list<const char*> names);
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);
// Refuses a file without a name, and an output that is an input or another output under any name:
// to be asked before the first is written.
void refuse_overwriting(const std::vector<NamedFile>& inputs,
                        const std::vector<NamedFile>& outputs);

}  // namespace frazil
