#include "profiles/known_names.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frazil {
namespace {

using namespace std::string_view_literals;

constexpr std::array kNames = {"gpipe"sv, "1f1b"sv, "interleaved-1f1b"sv, "zb-h1"sv, "zb-h2"sv};

TEST(KnownNames, AreTheSameWhateverTheirCase) {
  EXPECT_TRUE(is_same_name("GPipe", "gpipe"));
  EXPECT_TRUE(is_same_name("", ""));
  EXPECT_FALSE(is_same_name("gpipe", "gpipes"));
  EXPECT_FALSE(is_same_name("zb-h1", "zb_h1"));
}

TEST(KnownNames, AreSuggestedForWhatIsMisspelt) {
  EXPECT_EQ(nearest_name("zbh1", kNames), "zb-h1");
  EXPECT_EQ(nearest_name("gpiep", kNames), "gpipe");
  EXPECT_EQ(nearest_name("1F1", kNames), "1f1b");
  EXPECT_EQ(nearest_name("INTERLEAVD_1f1b", kNames), "interleaved-1f1b");
  EXPECT_EQ(nearest_name("alfa", std::vector<std::string_view>{"static", "alpha"}), "alpha");
  EXPECT_EQ(did_you_mean("zbh2", kNames), "; did you mean zb-h2?");
}

TEST(KnownNames, AreSuggestedForTheirBegin) {
  EXPECT_EQ(nearest_name("interleaved", kNames), "interleaved-1f1b");
  const std::vector<std::string_view> both = {"looped-bfs", "interleaved-1f1b", "interleaved-zb"};
  EXPECT_EQ(nearest_name("interleaved", both), "interleaved-1f1b");  // fewer edits make the other
  EXPECT_EQ(nearest_name("Interleaved-zv", both), "interleaved-zb");
  EXPECT_EQ(nearest_name("devices", std::vector<std::string_view>{"device-kind", "device"}),
            "device");
  EXPECT_EQ(nearest_name("zb-", kNames), "zb-h1");
  EXPECT_EQ(nearest_name("in", kNames), "");
}

TEST(KnownNames, AreNotSuggestedForOtherWords) {
  EXPECT_EQ(nearest_name("megatron", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name(std::string(65, 'z'), kNames), "");
  EXPECT_EQ(nearest_name("gpipe", {}), "");
  EXPECT_EQ(did_you_mean("megatron", kNames), "");
}

TEST(KnownNames, OfOneDistanceTheFirstIsSuggested) {
  EXPECT_EQ(nearest_name("zb-h3", kNames), "zb-h1");
}

// All words over `letters` that one edit makes of `word`.
std::set<std::string> edited(const std::string& word, const std::string& letters) {
  std::set<std::string> words;
  for (std::size_t i = 0; i <= word.size(); ++i) {
    for (const char letter : letters) {
      words.insert(word.substr(0, i) + letter + word.substr(i));
      if (i < word.size()) words.insert(word.substr(0, i) + letter + word.substr(i + 1));
    }
    if (i < word.size()) words.insert(word.substr(0, i) + word.substr(i + 1));
    if (i + 1 < word.size()) {
      std::string swapped = word;
      std::swap(swapped[i], swapped[i + 1]);
      words.insert(swapped);
    }
  }
  return words;
}

TEST(KnownNames, AreAsManyEditsApartAsTheShortestWayOverEditedWords) {
  const std::string letters = "ab";
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; words[i].size() < 4; ++i) {
    for (const char letter : letters) words.push_back(words[i] + letter);
  }
  for (const std::string& from : words) {
    const std::set<std::string> one = edited(from, letters);
    for (const std::string& to : words) {
      EXPECT_EQ(count_edits(from, to), count_edits(to, from));
      EXPECT_EQ(count_edits(from, to) == 0, from == to);
      if (from != to) {
        EXPECT_EQ(count_edits(from, to) == 1, one.count(to) > 0) << from << " " << to;
      }
    }
  }
  EXPECT_EQ(count_edits("kitten", "sitting"), 3U);
  EXPECT_EQ(count_edits("ca", "abc"), 3U);  // no further edit inside swapped neighbours
  EXPECT_EQ(count_edits("BATCH", "bacth"), 1U);
}

}  // namespace
}  // namespace frazil
