#pragma once
// Reading what a verb's command line says. Everything here throws InputError{"command line"}, which
// names the flag, what it was given and what was expected.

#include <boost/program_options.hpp>
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
bool is_set(const Flags& flags, const std::string& name);  // of a switch

// A flag's integer in [minimum, maximum]; of a comma list, all.
int checked_flag(const std::string& flag, const std::string& value, int minimum, int maximum);
std::vector<int> checked_flags(const std::string& flag, const std::string& comma_list, int minimum,
                               int maximum);

// Refuses any of `others` beside --mode.
void refuse_together(const Flags& flags, const std::string& mode,
                     std::initializer_list<const char*> others);

// The arguments with every word that is neither a flag nor a flag's value as a value of --name, for
// flags are all that verbs parse.
std::vector<std::string> name_words(int argc, char** argv,
                                    const boost::program_options::options_description& flags,
                                    const std::string& name);

}  // namespace frazil
