#include "planner/answers/terminal_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace frazil {
namespace {

constexpr std::string_view kTable =
    "schedule                 makespan   bubble\n"
    "zb-v                    25.500 ms     5.9%\n"
    "interleaved-1f1b        26.250 ms     8.6%\n";

std::size_t widest(std::string_view text) {
  std::size_t most = 0;
  std::size_t width = 0;
  for (const char byte : text) {
    if ((static_cast<unsigned char>(byte) & 0xc0U) != 0x80U) ++width;
    if (byte == '\n') {
      most = std::max(most, width - 1);
      width = 0;
    }
  }
  return most;
}

TEST(TerminalText, IsUnchangedWithoutATerminal) {
  EXPECT_EQ(show_on({}, kTable), kTable);
  EXPECT_EQ(show_on({}, "no newline"), "no newline");
}

TEST(TerminalText, IsUnchangedWhereItFits) {
  EXPECT_EQ(show_on({.columns = 42}, kTable), kTable);
  const std::string text = "one\n\n" + std::string(kTable) + "\nlast\n";
  EXPECT_EQ(show_on({.columns = 80}, text), text);
}

TEST(TerminalText, OfATableLosesTheBlanksBetweenItsColumnsFirst) {
  EXPECT_EQ(show_on({.columns = 36}, kTable),
            "schedule          makespan bubble\n"
            "zb-v             25.500 ms   5.9%\n"
            "interleaved-1f1b 26.250 ms   8.6%\n");
}

TEST(TerminalText, OfATableThenLosesTheMiddleOfItsLongestTexts) {
  EXPECT_EQ(show_on({.columns = 30}, kTable),
            "schedule       makespan bubble\n"
            "zb-v          25.500 ms   5.9%\n"
            "interl…d-1f1b 26.250 ms   8.6%\n");
}

TEST(TerminalText, OfATableKeepsTheFiguresBesideNamesOfAnyLength) {
  const std::string name(300, 'x');
  const std::string part(13, 'x');
  const std::string table = "layer" + std::string(299, ' ') + "kind     F\n" +  //
                            "a" + name + "z  conv   1.5\n" +                    //
                            "b" + name + "y  linear 2.5\n";
  EXPECT_EQ(show_on({.columns = 40}, table), "layer" + std::string(25, ' ') + "kind     F\n" +  //
                                                 "a" + part + "…" + part + "z conv   1.5\n" + "b" +
                                                 part + "…" + part + "y linear 2.5\n");
}

TEST(TerminalText, OfATableTakesBlanksInItsLongestTextForNoColumns) {
  const std::string table = "layer" + std::string(27, ' ') + "    F\n" +  //
                            "a" + std::string(31, ' ') + "  1.5\n" +      //
                            "Linear(in=1024,  out=102, bias)   2.5\n";
  EXPECT_EQ(show_on({.columns = 24}, table), "layer" + std::string(18, ' ') + "F\n" +  //
                                                 "a" + std::string(20, ' ') + "1.5\n" +
                                                 "Linear(in=…02, bias) 2.5\n");
}

TEST(TerminalText, OfATableThenLosesTheEndsOfItsRows) {
  EXPECT_EQ(show_on({.columns = 24}, kTable),
            "schedule      makespan …\n"
            "zb-v         25.500 ms …\n"
            "interl…-1f1b 26.250 ms …\n");
}

TEST(TerminalText, OfASentenceGoesOnInAFurtherLine) {
  EXPECT_EQ(show_on({.columns = 24}, "note: bytes take no time over 2 of 2 links\n"),
            "note: bytes take no time\n"
            "  over 2 of 2 links\n");
}

TEST(TerminalText, OfARowThatEndsInASentenceGoesOnBelowIt) {
  EXPECT_EQ(show_on({.columns = 44},
                    "gpipe                excluded: needs 8 micro-batches, limit 3\n"
                    "interleaved-1f1b v=2 excluded: needs 5 micro-batches, limit 3\n"
                    "zb-v                 excluded: needs 4 micro-batches, limit 3\n"),
            "gpipe                excluded: needs 8\n"
            "                     micro-batches, limit 3\n"
            "interleaved-1f1b v=2 excluded: needs 5\n"
            "  micro-batches, limit 3\n"
            "zb-v                 excluded: needs 4\n"
            "                     micro-batches, limit 3\n");
}

TEST(TerminalText, KeepsAWordThatIsWiderThanTheTerminal) {
  const std::string word(40, 'x');
  EXPECT_EQ(show_on({.columns = 24}, "wrote " + word + "\n"), "wrote\n  " + word + "\n");
}

TEST(TerminalText, OfADrawnTimeLineLosesNoTime) {
  const std::string drawn = "d0 |0    1|\nd1 |  0  1|\n";
  EXPECT_EQ(show_on({.columns = 20}, drawn), drawn);
}

TEST(TerminalText, NeverHasARowThatIsTooWide) {
  for (int columns = 20; columns < 60; ++columns) {
    EXPECT_LE(widest(show_on({.columns = columns}, kTable)), static_cast<std::size_t>(columns));
  }
}

TEST(TerminalText, CountsACharacterOfSeveralBytesAsOneColumn) {
  EXPECT_EQ(show_on({.columns = 20}, "ä  ö\nµ  20 characters wide\n"),
            "ä ö\nµ 20 characters wide\n");
}

TEST(TerminalText, HasColoursWhereTheTerminalHas) {
  EXPECT_EQ(show_on({.columns = 80, .colours = true}, "it does not fit\n"),
            "it \x1b[31mdoes not fit\x1b[0m\n");
  EXPECT_EQ(show_on({.colours = true}, "a  b\n1  2\n"), "\x1b[1ma  b\x1b[0m\n1  2\n");
}

}  // namespace
}  // namespace frazil
