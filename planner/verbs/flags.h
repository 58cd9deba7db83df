#pragma once
// Reads the flags of a subcommand. Errors are InputErrors that name the flag, what it was given and
// what was expected; their file is "command line", or for a duration the flag.

#include <boost/program_options.hpp>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frazil {

using Flags = boost::program_options::variables_map;

inline constexpr int kMostCounted = 1'000'000;  // the largest number that a flag counts

// Returns the description of a flag with a value, which --help calls `name` ("FILE", "N").
boost::program_options::typed_value<std::string>* text_value(const char* name);

// Describes a flag of which only some words are taken, or comma lists of them where --help calls
// its value LIST. Shells complete the words; whoever reads the flag refuses others.
class KnownValue : public boost::program_options::typed_value<std::string> {
 public:
  KnownValue(const char* name, std::span<const std::string_view> words);
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
};

// Returns the description of such a flag; program_options takes it over.
KnownValue* known_value(const char* name, std::span<const std::string_view> words);

[[noreturn]] void refuse_flags(const std::string& found, const std::string& expected);

std::optional<std::string> optional_text(const Flags& flags, const std::string& name);
std::string required_text(const Flags& flags, const std::string& name);
std::optional<int> optional_integer(const Flags& flags, const std::string& name, int minimum,
                                    int maximum);
int integer_or(const Flags& flags, const std::string& name, int fallback, int minimum, int maximum);
int required_integer(const Flags& flags, const std::string& name, int minimum, int maximum);
Duration duration_or(const Flags& flags, const std::string& name, Duration fallback);
// Returns a percentage from 0 to 100, with up to four decimals, in parts per million: "2.5" is
// 25000.
std::int64_t required_percent_ppm(const Flags& flags, const std::string& name);
// Returns the values of a flag that may be repeated; empty if the flag was not given.
std::vector<std::string> text_list(const Flags& flags, const std::string& name);
// True if a flag without a value is given; false for one that the subcommand does not have.
bool is_set(const Flags& flags, const std::string& name);

// Return the value of a flag as an integer in [minimum, maximum], and the values of a comma list,
// in which no number may stand twice.
int checked_flag(const std::string& flag, const std::string& value, int minimum, int maximum);
std::vector<int> checked_flags(const std::string& flag, const std::string& comma_list, int minimum,
                               int maximum);

// Returns "exact or fast"; "kineto, sailor or csv".
std::string list_names(std::span<const std::string_view> names);
// Returns the one of the known names that `found` is, in any case. Refuses any other as "found FLAG
// FOUND", and suggests the nearest name. `flag` is "" for a word without one.
std::string known_name(const std::string& flag, const std::string& found,
                       std::span<const std::string_view> known);

// Throws if any of `others` is given beside `mode`, which is written as it was given ("--stages").
void refuse_together(const Flags& flags, const std::string& mode,
                     std::initializer_list<const char*> others);

// A file that the command line names; refusals call it by its `flag` ("--out").
struct NamedFile {
  std::string flag;
  std::filesystem::path path;
};

// Returns the files of those flags in `names` that are given.
std::vector<NamedFile> named_files(const Flags& flags, std::initializer_list<const char*> names);
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);
// Refuse a place for a file or for a folder before any work: one without a name, `-`, and one in a
// folder that does not exist or cannot be written; refuse_file_place() also what is a folder.
void refuse_file_place(const NamedFile& output);
void refuse_folder_place(const NamedFile& output);
// Throws for a file without a name, and for an output that is an input or another output under any
// name.
void refuse_same_files(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs);
// Throws for what refuse_same_files() and refuse_file_place() refuse. It is to be called before any
// work.
void refuse_overwriting(const std::vector<NamedFile>& inputs,
                        const std::vector<NamedFile>& outputs);

}  // namespace frazil
