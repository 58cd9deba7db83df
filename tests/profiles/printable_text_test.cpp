#include "profiles/printable_text.h"

#include <gtest/gtest.h>

namespace frazil {
namespace {

TEST(PrintableText, KeepsWhatATerminalShows) {
  const std::string text = "device 0: 3 µs → 漢字 🙂\nsecond line";
  EXPECT_EQ(escape_controls(text, ControlForm::kText), text);
  EXPECT_EQ(escape_controls(text, ControlForm::kJson), text);
}

TEST(PrintableText, WritesOutWhatATerminalObeys) {
  EXPECT_EQ(escape_controls("a\x1b[31mb\x07\x7f\r", ControlForm::kText),
            "a\\x1b[31mb\\x07\\x7f\\x0d");
  EXPECT_EQ(escape_controls("csi \xc2\x9b"
                            "31m",
                            ControlForm::kText),
            "csi \\xc2\\x9b31m");
  EXPECT_EQ(escape_controls("no-break space \xc2\xa0", ControlForm::kText),
            "no-break space \xc2\xa0");
}

TEST(PrintableText, WritesOutBytesThatAreNotUtf8) {
  EXPECT_EQ(escape_controls("a\xff\xc3", ControlForm::kText), "a\\xff\\xc3");
}

TEST(PrintableText, OfOneLineHasNoNewline) {
  EXPECT_EQ(escape_controls("a\nb", ControlForm::kOneLine), "a\\x0ab");
  EXPECT_EQ(escape_controls("a\nb", ControlForm::kText), "a\nb");
}

TEST(PrintableText, OfJsonStaysJson) {
  EXPECT_EQ(escape_controls("{\"name\": \"\x7f\xc2\x9b\"}\n", ControlForm::kJson),
            "{\"name\": \"\\u007f\\u009b\"}\n");
}

}  // namespace
}  // namespace frazil
