#include "traces/json_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "traces/json_text.h"

namespace frazil {
namespace {

// Adds the zero byte and the margin and nothing more, so that a sanitizer sees every step beyond.
std::vector<char> with_margin(const std::string& text) {
  std::vector<char> bytes(text.begin(), text.end());
  bytes.resize(text.size() + kScanMargin);
  return bytes;
}

// The test places every byte behind runs that end at every place of a block and of the next one.
TEST(JsonScan, FindsEveryByteThatEndsARunInAString) {
  for (std::size_t run = 0; run <= 40; ++run) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text = std::string(run, 'a') + static_cast<char>(byte) + "\"";
      const bool stops = byte < 0x20 || byte == '"' || byte == '\\';
      const auto bytes = with_margin(text);
      ASSERT_EQ(find_string_stop(bytes.data()) - bytes.data(), stops ? run : run + 1)
          << "byte " << byte;
    }
  }
}

TEST(JsonScan, FindsEveryByteThatEndsARunOfSpace) {
  const std::string spaces = " \t\r\n";
  for (std::size_t run = 0; run <= 40; ++run) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text;
      while (text.size() < run) text += spaces[text.size() * 7 % 5 % 4];
      text += static_cast<char>(byte);
      const bool is_space = spaces.find(static_cast<char>(byte)) != std::string::npos;
      const auto bytes = with_margin(text);
      ASSERT_EQ(find_non_space(bytes.data()) - bytes.data(), is_space ? run + 1 : run)
          << "byte " << byte;
    }
  }
}

TEST(JsonScan, CountsTheLinesOfEveryLength) {
  std::string text;
  int lines = 0;
  for (std::size_t size = 0; size < 700; ++size) {
    ASSERT_EQ(count_lines(text.data(), text.data() + text.size()), lines) << size;
    const bool is_line = size < 300 || size % 3 == 0;  // blocks of nothing else, then mixed ones
    text += is_line ? '\n' : ' ';
    lines += is_line ? 1 : 0;
  }
}

TEST(JsonScan, StepsOverNumbersOrStopsWhereTheyGoOn) {
  std::mt19937_64 random(11);
  SCOPED_TRACE("seed 11");
  const std::string characters = "0012-+.eE5";
  int whole = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (std::size_t size = 1 + random() % 6; text.size() < size;) {
      text += characters[random() % characters.size()];
    }
    const auto bytes = with_margin(text + ",");
    const char* const end = skip_plain_number(bytes.data());
    if (may_stand_in_number(*end)) continue;
    ASSERT_TRUE(is_json_number(text)) << text;
    ASSERT_EQ(end - bytes.data(), text.size()) << text;
    ++whole;
  }
  EXPECT_GT(whole, 1000);
  for (const std::string text :
       {"0", "-0", "7", "1102", "0.800", "-12.5", "1712195495519689.047"}) {
    const auto bytes = with_margin(text);
    EXPECT_EQ(skip_plain_number(bytes.data()) - bytes.data(), text.size()) << text;
  }
}

}  // namespace
}  // namespace frazil
