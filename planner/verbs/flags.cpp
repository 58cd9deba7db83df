#include "planner/verbs/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>

#include "profiles/error.h"
#include "profiles/known_names.h"
#include "profiles/quantity_text.h"

namespace frazil {

boost::program_options::typed_value<std::string>* text_value(const char* name) {
  return boost::program_options::value<std::string>()->value_name(name);
}

KnownValue::KnownValue(const char* name, std::span<const std::string_view> words)
    : typed_value(nullptr), words_(words.begin(), words.end()) {
  value_name(name);
}

KnownValue* known_value(const char* name, std::span<const std::string_view> words) {
  return std::make_unique<KnownValue>(name, words).release();
}

void refuse_flags(const std::string& found, const std::string& expected) {
  throw InputError("command line", 0, found, expected);
}

std::optional<std::string> optional_text(const Flags& flags, const std::string& name) {
  if (flags.count(name) == 0) return std::nullopt;
  return flags[name].as<std::string>();
}

std::string required_text(const Flags& flags, const std::string& name) {
  const std::optional<std::string> text = optional_text(flags, name);
  if (!text) refuse_flags("no --" + name, "it to be given");
  return *text;
}

std::optional<int> optional_integer(const Flags& flags, const std::string& name, int minimum,
                                    int maximum) {
  const std::optional<std::string> text = optional_text(flags, name);
  if (!text) return std::nullopt;
  return checked_flag("--" + name, *text, minimum, maximum);
}

int integer_or(const Flags& flags, const std::string& name, int fallback, int minimum,
               int maximum) {
  return optional_integer(flags, name, minimum, maximum).value_or(fallback);
}

int required_integer(const Flags& flags, const std::string& name, int minimum, int maximum) {
  return checked_flag("--" + name, required_text(flags, name), minimum, maximum);
}

Duration duration_or(const Flags& flags, const std::string& name, Duration fallback) {
  const std::optional<std::string> text = optional_text(flags, name);
  return text ? parse_duration(*text, "--" + name) : fallback;
}

std::int64_t required_percent_ppm(const Flags& flags, const std::string& name) {
  constexpr std::size_t kDecimals = 4;
  constexpr std::int64_t kAll = 1'000'000;
  const std::string text = required_text(flags, name);
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string decimals = point < text.size() ? text.substr(point + 1) : "0";
  std::string digits = text.substr(0, point);
  const bool has_all = !digits.empty() && !decimals.empty() && decimals.size() <= kDecimals;
  decimals.resize(kDecimals, '0');
  digits += decimals;
  std::int64_t ppm = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, ppm);
  if (!has_all || error != std::errc{} || stop != end || digits.front() == '-' || ppm > kAll) {
    refuse_flags(fmt::format("--{} {}", name, text),
                 "a percentage from 0 to 100 with at most four decimals");
  }
  return ppm;
}

std::vector<std::string> text_list(const Flags& flags, const std::string& name) {
  if (flags.count(name) == 0) return {};
  return flags[name].as<std::vector<std::string>>();
}

bool is_set(const Flags& flags, const std::string& name) {
  return flags.count(name) > 0 && flags[name].as<bool>();
}

int checked_flag(const std::string& flag, const std::string& value, int minimum, int maximum) {
  int number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || stop != end || number < minimum || number > maximum) {
    throw InputError("command line", 0, fmt::format("{} {}", flag, value),
                     fmt::format("an integer from {} to {}", minimum, maximum));
  }
  return number;
}

std::vector<int> checked_flags(const std::string& flag, const std::string& comma_list, int minimum,
                               int maximum) {
  std::vector<int> numbers;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = comma_list.find(',', begin);
    if (comma == begin || begin == comma_list.size()) {
      refuse_flags(fmt::format("{} `{}`", flag, comma_list),
                   "a number on both sides of each comma");
    }
    const int number =
        checked_flag(flag, comma_list.substr(begin, comma - begin), minimum, maximum);
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) {
      refuse_flags(fmt::format("{} {}", flag, comma_list), "each number once");
    }
    numbers.push_back(number);
    if (comma == std::string::npos) return numbers;
    begin = comma + 1;
  }
}

std::string list_names(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    list += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    list += names[i];
  }
  return list;
}

std::string known_name(const std::string& flag, const std::string& found,
                       std::span<const std::string_view> known) {
  for (const std::string_view name : known) {
    if (is_same_name(name, found)) return std::string(name);
  }
  refuse_flags(flag.empty() ? fmt::format("`{}`", found) : fmt::format("{} {}", flag, found),
               list_names(known) + did_you_mean(found, known));
}

void refuse_together(const Flags& flags, const std::string& mode,
                     std::initializer_list<const char*> others) {
  for (const char* other : others) {
    const bool given = flags.count(other) > 0 && !flags[other].defaulted();
    if (given) refuse_flags(fmt::format("--{} with {}", other, mode), "one or the other");
  }
}

std::vector<NamedFile> named_files(const Flags& flags, std::initializer_list<const char*> names) {
  std::vector<NamedFile> files;
  for (const char* const name : names) {
    if (const auto path = optional_text(flags, name)) {
      files.push_back({std::string("--") + name, *path});
    }
  }
  return files;
}

bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  // A file that cannot be looked at is refused where it is opened.
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const std::filesystem::path full_a = std::filesystem::weakly_canonical(absolute(a), error);
  if (error) return false;
  const std::filesystem::path full_b = std::filesystem::weakly_canonical(absolute(b), error);
  return !error && full_a == full_b;
}

void refuse_folder_place(const NamedFile& output) {
  const std::string place = fmt::format("{} {}", output.flag, output.path.string());
  if (output.path.empty()) refuse_flags("an empty " + output.flag, "a name");
  if (output.path == "-") {
    refuse_flags(place,
                 "a name, for the answer alone goes to standard output; ./- is a file of "
                 "that name");
  }
  // The folder of "runs/new/" is "runs".
  const std::filesystem::path named =
      output.path.has_filename() ? output.path : output.path.parent_path();
  const std::filesystem::path folder =
      named.has_parent_path() ? named.parent_path() : std::filesystem::path(".");
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    refuse_flags(fmt::format("{}, but folder {} does not exist", place, folder.string()),
                 "a folder that exists");
  }
  if (!std::filesystem::is_directory(folder, error)) {
    refuse_flags(fmt::format("{}, but {} is no folder", place, folder.string()), "a folder");
  }
}

void refuse_file_place(const NamedFile& output) {
  refuse_folder_place(output);
  std::error_code error;
  if (!output.path.has_filename() || std::filesystem::is_directory(output.path, error)) {
    refuse_flags(fmt::format("{} {}, a folder", output.flag, output.path.string()),
                 "the name of a file");
  }
}

void refuse_same_files(const std::vector<NamedFile>& inputs,
                       const std::vector<NamedFile>& outputs) {
  const auto refuse_empty = [](const NamedFile& file) {
    if (file.path.empty()) refuse_flags("an empty " + file.flag, "the name of a file");
  };
  for (const NamedFile& input : inputs) refuse_empty(input);
  for (const NamedFile& output : outputs) {
    refuse_empty(output);
    const auto refuse_same = [&](const NamedFile& other) {
      if (!is_same_file(output.path, other.path)) return;
      refuse_flags(
          fmt::format("{} {} for the file of {}", output.flag, output.path.string(), other.flag),
          "another file");
    };
    for (const NamedFile& input : inputs) refuse_same(input);
    for (const NamedFile* other = outputs.data(); other != &output; ++other) refuse_same(*other);
  }
}

void refuse_overwriting(const std::vector<NamedFile>& inputs,
                        const std::vector<NamedFile>& outputs) {
  refuse_same_files(inputs, outputs);
  for (const NamedFile& output : outputs) refuse_file_place(output);
}

}  // namespace frazil
