#include "planner/flags.h"

#include <fmt/format.h>

#include <charconv>

#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {

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

bool is_set(const Flags& flags, const std::string& name) { return flags[name].as<bool>(); }

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
    numbers.push_back(
        checked_flag(flag, comma_list.substr(begin, comma - begin), minimum, maximum));
    if (comma == std::string::npos) return numbers;
    begin = comma + 1;
  }
}

void refuse_together(const Flags& flags, const std::string& mode,
                     std::initializer_list<const char*> others) {
  for (const char* other : others) {
    const bool given = flags.count(other) > 0 && !flags[other].defaulted();
    if (given) refuse_flags(fmt::format("--{} with --{}", other, mode), "one or the other");
  }
}

std::vector<std::string> name_words(int argc, char** argv,
                                    const boost::program_options::options_description& flags,
                                    const std::string& name) {
  std::vector<std::string> words;
  bool is_value = false;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_flag = word.rfind("--", 0) == 0;
    if (i > 0 && !is_flag && !is_value) words.push_back("--" + name);
    words.push_back(word);
    const auto* option = is_flag ? flags.find_nothrow(word.substr(2), false) : nullptr;
    is_value = option != nullptr && option->semantic()->max_tokens() > 0;
  }
  return words;
}

}  // namespace frazil
