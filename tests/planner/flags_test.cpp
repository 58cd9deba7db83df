#include "planner/flags.h"

#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

TEST(Flags, ChecksTheRangeOfAnInteger) {
  EXPECT_EQ(checked_flag("--batch", "8", 1, 10), 8);
  EXPECT_EQ(checked_flag("--batch", "-8", -10, 10), -8);
  for (const char* value :
       {"", "0", "11", "8.0", "8x", " 8", "99999999999999999999", "--8", "+8"}) {
    try {
      checked_flag("--batch", value, 1, 10);
      FAIL() << value << " was taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), std::string("command line: found --batch ") + value +
                                  ", expected an integer from 1 to 10");
    }
  }
}

TEST(Flags, ChecksEveryIntegerOfAList) {
  EXPECT_EQ(checked_flags("--sizes", "4,8,16", 1, 16), (std::vector<int>{4, 8, 16}));
  EXPECT_EQ(checked_flags("--sizes", "4", 1, 16), (std::vector<int>{4}));
  for (const char* list : {"", "4,", ",4", "4,,8", "4,17", "4;8"}) {
    EXPECT_THROW(checked_flags("--sizes", list, 1, 16), InputError) << list;
  }
}

po::options_description make_flags() {
  po::options_description flags("flags");
  flags.add_options()("word", po::value<std::vector<std::string>>(), "files")(
      "out", po::value<std::string>(), "a file")("json", po::bool_switch(), "a switch");
  return flags;
}

std::vector<std::string> name(std::vector<std::string> words) {
  words.insert(words.begin(), "frazil-test");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  words = name_words(static_cast<int>(argv.size()), argv.data(), make_flags(), "word");
  words.erase(words.begin());
  return words;
}

TEST(Flags, WordsThatAreNeitherFlagsNorTheirValuesGetAName) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(name({"a", "--out", "b", "c"}), (Words{"--word", "a", "--out", "b", "--word", "c"}));
  EXPECT_EQ(name({"--out=b", "c", "--json", "d"}),
            (Words{"--out=b", "--word", "c", "--json", "--word", "d"}));
  EXPECT_EQ(name({"--help"}), (Words{"--help"}));
}

Flags parse(std::vector<const char*> words) {
  words.insert(words.begin(), "frazil-test");
  Flags flags;
  po::store(po::parse_command_line(static_cast<int>(words.size()), words.data(), make_flags()),
            flags);
  return flags;
}

TEST(Flags, ThoseThatExcludeEachOtherAreNamedAndASwitchThatIsOffIsNone) {
  EXPECT_NO_THROW(refuse_together(parse({"--out", "x"}), "stages", {"json", "word"}));
  try {
    refuse_together(parse({"--json"}), "stages", {"out", "json"});
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "command line: found --json with --stages, expected one or the other");
  }
}

TEST(Flags, WhatIsMissingIsNamed) {
  const Flags flags = parse({"--out", "7"});
  EXPECT_EQ(integer_or(flags, "out", 3, 1, 9), 7);
  EXPECT_EQ(optional_integer(parse({}), "out", 1, 9), std::nullopt);
  EXPECT_THROW(required_integer(parse({}), "out", 1, 9), InputError);
  EXPECT_THROW(required_integer(flags, "out", 1, 6), InputError);
  EXPECT_EQ(duration_or(parse({}), "out", Duration{5}), Duration{5});
}

}  // namespace
}  // namespace frazil
