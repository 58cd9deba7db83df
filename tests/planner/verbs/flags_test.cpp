#include "planner/verbs/flags.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/support/program_folder.h"

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
  for (const char* list : {"", "4,", ",4", "4,,8", "4,17", "4;8", "4,8,4"}) {
    EXPECT_THROW(checked_flags("--sizes", list, 1, 16), InputError) << list;
  }
  try {
    checked_flags("--sizes", "4,", 1, 16);
  } catch (const InputError& error) {
    EXPECT_EQ(error.found(), "--sizes `4,`");
  }
}

po::options_description make_flags() {
  po::options_description flags("flags");
  flags.add_options()("word", po::value<std::vector<std::string>>(), "files")(
      "out", po::value<std::string>(), "a file")("json", po::bool_switch(), "a switch");
  return flags;
}

Flags parse(std::vector<const char*> words) {
  words.insert(words.begin(), "frazil-test");
  Flags flags;
  po::store(po::parse_command_line(static_cast<int>(words.size()), words.data(), make_flags()),
            flags);
  return flags;
}

TEST(Flags, ThoseThatExcludeEachOtherAreNamedAndASwitchThatIsOffIsNone) {
  EXPECT_NO_THROW(refuse_together(parse({"--out", "x"}), "--stages", {"json", "word"}));
  try {
    refuse_together(parse({"--json"}), "--stages", {"out", "json"});
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

TEST(Flags, APercentageIsExactInPartsPerMillion) {
  const auto ppm = [](const char* text) {
    return required_percent_ppm(parse({"--out", text}), "out");
  };
  EXPECT_EQ(ppm("0"), 0);
  EXPECT_EQ(ppm("5"), 50'000);
  EXPECT_EQ(ppm("2.5"), 25'000);
  EXPECT_EQ(ppm("0.0001"), 1);
  EXPECT_EQ(ppm("100.0000"), 1'000'000);
  for (const char* text : {"", ".5", "5.", "-1", "100.0001", "2.00001", "2.-5", "2.5.1", "2,5",
                           "some", "99999999999999999999"}) {
    EXPECT_THROW(ppm(text), InputError) << text;
  }
}

// Returns the sentence of a refusal, or "" if nothing is refused.
std::string refusal(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  try {
    refuse_overwriting(inputs, outputs);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Flags, AnOutputIsNeitherAnInputNorAnotherOutputUnderAnyName) {
  namespace fs = std::filesystem;
  const ProgramFolder folder("flags-overwriting");
  const fs::path here = folder.path("");
  write_text_file(here / "a.json", "{}");
  fs::create_symlink("a.json", here / "link.json");
  fs::create_symlink(".", here / "same");
  EXPECT_EQ(refusal({{"--plan", here / "a.json"}}, {{"--out", here / "b.json"}}), "");
  EXPECT_EQ(refusal({}, {{"--out", here / "b.json"}, {"--chrome", here / "c.json"}}), "");
  EXPECT_EQ(
      refusal({{"--plan", "absent.json"}}, {{"--out", "./absent.json"}}),
      "command line: found --out ./absent.json for the file of --plan, expected another file");
  for (const char* name : {"a.json", "./a.json", "link.json", "same/a.json", "x/../a.json"}) {
    EXPECT_NE(refusal({{"--plan", here / "a.json"}}, {{"--out", here / name}}), "") << name;
  }
  EXPECT_NE(refusal({}, {{"--out", here / "new.json"}, {"--chrome", here / "same" / "new.json"}}),
            "");
  EXPECT_EQ(refusal({}, {{"--out", ""}}),
            "command line: found an empty --out, expected the name of a file");
}

TEST(Flags, AnOutputHasAFolderAndANameBeforeAnyWork) {
  const ProgramFolder folder("flags-places");
  const std::filesystem::path here = folder.path("");
  write_text_file(here / "file", "");
  EXPECT_EQ(refusal({}, {{"--out", "-"}}),
            "command line: found --out -, expected a name, for the answer alone goes to standard "
            "output; ./- is a file of that name");
  EXPECT_EQ(refusal({}, {{"--out", "typo/dir/x"}}),
            "command line: found --out typo/dir/x, but folder typo/dir does not exist, expected a "
            "folder that exists");
  EXPECT_NE(refusal({}, {{"--out", here / "file" / "x"}}), "");
  EXPECT_NE(refusal({}, {{"--out", here}}), "");
  EXPECT_NE(refusal({}, {{"--out", "."}}), "");
  EXPECT_EQ(refusal({}, {{"--out", "./-"}}), "");
  EXPECT_EQ(refusal({}, {{"--out", here / "new"}}), "");
  EXPECT_FALSE(std::filesystem::exists("typo"));
}

TEST(Flags, AFolderOfAnOutputMayBeNewByOneLevel) {
  const ProgramFolder folder("flags-folders");
  const std::filesystem::path here = folder.path("");
  for (const char* name : {"new", "new/", "."}) {
    EXPECT_NO_THROW(refuse_folder_place({"--out", here / name})) << name;
  }
  for (const char* name : {"new/run", "new/run/"}) {
    EXPECT_THROW(refuse_folder_place({"--out", here / name}), InputError) << name;
  }
}

TEST(Flags, ANameIsTakenInAnyCaseAndAMisspeltOneIsAnswered) {
  constexpr std::array<std::string_view, 3> kNames = {"svg", "html", "chrome"};
  EXPECT_EQ(known_name("--to", "HTML", kNames), "html");
  try {
    known_name("--to", "crome", kNames);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "command line: found --to crome, expected svg, html or chrome; did you mean "
                 "chrome?");
  }
}

}  // namespace
}  // namespace frazil
