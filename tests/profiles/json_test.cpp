#include "profiles/json.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
constexpr double kAnyReal = std::numeric_limits<double>::max();

template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, ReadsEveryKindOfValue) {
  const JsonCursor root = parse_json(
      R"({"n": null, "t": true, "i": -7, "r": 2.5, "s": "a\u00e4\n", "l": [1, []]})", "f");
  JsonFields fields(root);
  EXPECT_TRUE(fields.required("n").is_null());
  EXPECT_TRUE(fields.required("t").boolean());
  EXPECT_EQ(fields.required("i").integer(-10, 10), -7);
  EXPECT_EQ(fields.required("i").real(-10, 10), -7.0);
  EXPECT_EQ(fields.required("r").real(0, 3), 2.5);
  EXPECT_EQ(fields.required("s").text(), "a\xc3\xa4\n");
  const JsonCursor list = fields.required("l");
  ASSERT_TRUE(list.is_array());
  ASSERT_EQ(list.items().size(), 2u);
  EXPECT_EQ(list.items()[0].integer(0, 1), 1);
  EXPECT_TRUE(list.items()[1].items().empty());
  EXPECT_NO_THROW(fields.finish());
  EXPECT_EQ(fields.keys(), (std::vector<std::string>{"n", "t", "i", "r", "s", "l"}));
}

TEST(Json, ReadsTheWholeRangeOf64BitIntegers) {
  const auto items = parse_json("[-9223372036854775808, 9223372036854775807]", "f").items();
  EXPECT_EQ(items[0].integer(kLowest, kHighest), kLowest);
  EXPECT_EQ(items[1].integer(kLowest, kHighest), kHighest);
}

TEST(Json, ANumberWithAPointOrAnExponentOrMinusZeroIsNoInteger) {
  for (const std::string text : {"1.0", "1e2", "-0", "-0.0", "1E0"}) {
    SCOPED_TRACE(text);
    const JsonCursor value = parse_json(text, "f");
    EXPECT_FALSE(value.is_integer());
    EXPECT_EQ(message_of([&] { value.integer(0, 9); }),
              "f:1: found `" + text + "` at $, expected an integer from 0 to 9");
    EXPECT_NO_THROW(value.real(-kAnyReal, kAnyReal));
  }
}

TEST(Json, EachValueKnowsItsLineAndPath) {
  const JsonCursor root = parse_json(
      "{\n"
      "  \"a\": 1,\n"
      "  \"b\": [10\n"
      "    , 20\n"
      "    ,\n"
      "    30],\n"
      "  \"odd key\":\n"
      "    {\"c\": \"x\"}\n"
      "}\n",
      "f");
  JsonFields fields(root);
  EXPECT_EQ(root.line(), 1);
  EXPECT_EQ(root.path(), "$");
  EXPECT_EQ(fields.required("a").line(), 2);
  const auto items = fields.required("b").items();
  EXPECT_EQ(items[0].line(), 3);  // the parser has read the newline after the number
  EXPECT_EQ(items[1].line(), 4);
  EXPECT_EQ(items[2].line(), 6);
  EXPECT_EQ(items[2].path(), "$.b[2]");
  JsonFields inner(fields.required("odd key"));
  EXPECT_EQ(inner.required("c").line(), 8);
  EXPECT_EQ(inner.required("c").path(), "$[\"odd key\"].c");
}

TEST(Json, CountsLinesFromTheGivenOne) {
  EXPECT_EQ(parse_json("[1,\n2]", "f", 40).items()[1].line(), 41);
  EXPECT_EQ(message_of([] { parse_json("{\n\"a\"", "f", 40); }),
            "f:41: found unexpected end of the text, expected a complete JSON value");
}

TEST(Json, ACursorKeepsItsDocumentAlive) {
  JsonCursor last;
  {
    const JsonCursor root = parse_json("[1, \"kept\"]", "f");
    last = root.items()[1];
  }
  EXPECT_EQ(last.text(), "kept");
}

TEST(Json, DescribesWhatStandsThere) {
  const std::string long_text(100, 'x');
  const auto items =
      parse_json(R"([null, false, -3, 1.50, "a\"b", [], {}, ")" + long_text + "\"]", "f").items();
  const std::vector<std::string> expected = {
      "`null`",       "`false`",  "`-3`",      "`1.50`",
      "`\"a\\\"b\"`", "an array", "an object", "`\"" + std::string(40, 'x') + "...\"`"};
  ASSERT_EQ(items.size(), expected.size());
  for (std::size_t i = 0; i < items.size(); ++i) EXPECT_EQ(items[i].describe(), expected[i]);
}

TEST(Json, CutsLongTextBetweenCharacters) {
  std::string text = "x";
  for (int i = 0; i < 30; ++i) text += "\xc3\xa4";  // every odd byte starts a character
  std::string shown = "x";
  for (int i = 0; i < 19; ++i) shown += "\xc3\xa4";
  EXPECT_EQ(parse_json("\"" + text + "\"", "f").describe(), "`\"" + shown + "...\"`");
}

TEST(Json, NestsAsDeepAs64) {
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_NO_THROW(parse_json(deep, "f"));
  EXPECT_EQ(message_of([&] { parse_json("[" + deep + "]", "f"); }),
            "f:1: found nesting deeper than 64, expected at most 64 arrays and objects in each "
            "other");
}

TEST(Json, RefusesTheWrongType) {
  const JsonCursor text = parse_json("\"x\"", "f");
  EXPECT_EQ(message_of([&] { text.integer(1, 3); }),
            "f:1: found `\"x\"` at $, expected an integer from 1 to 3");
  EXPECT_EQ(message_of([&] { text.real(0.5, 1); }),
            "f:1: found `\"x\"` at $, expected a number from 0.5 to 1");
  EXPECT_EQ(message_of([&] { text.boolean(); }),
            "f:1: found `\"x\"` at $, expected `true` or `false`");
  EXPECT_EQ(message_of([&] { text.items(); }), "f:1: found `\"x\"` at $, expected an array");
  EXPECT_EQ(message_of([&] { JsonFields fields(text); }),
            "f:1: found `\"x\"` at $, expected an object");
  const JsonCursor number = parse_json("4", "f");
  EXPECT_EQ(message_of([&] { number.text(); }), "f:1: found `4` at $, expected a string");
  EXPECT_EQ(message_of([&] { number.integer(1, 3); }),
            "f:1: found `4` at $, expected an integer from 1 to 3");
  EXPECT_EQ(message_of([&] { number.real(1, 3); }),
            "f:1: found `4` at $, expected a number from 1 to 3");
}

TEST(JsonFields, RefuseMembersThatNobodyAskedFor) {
  const JsonCursor root = parse_json("{\"a\": 1,\n\"b\": 2,\n\"c\":\n3}", "f");
  JsonFields fields(root);
  fields.required("a");
  fields.optional("b");
  fields.optional("d");
  EXPECT_EQ(message_of([&] { fields.finish(); }),
            "f:3: found the unknown key \"c\" at $, expected no keys but \"a\", \"b\", \"d\"");
  fields.optional("c");
  EXPECT_NO_THROW(fields.finish());
}

TEST(JsonFields, SayWhichKeyIsMissing) {
  const JsonCursor root = parse_json("[\n{}]", "f");
  JsonFields fields(root.items()[0]);
  EXPECT_FALSE(fields.optional("a").has_value());
  EXPECT_EQ(message_of([&] { fields.required("a"); }),
            "f:2: found an object without \"a\" at $[0], expected the key \"a\"");
}

TEST(JsonFields, TakeOnlyTheRightFormatAndVersion) {
  const auto take = [](const std::string& text) {
    return message_of([&] {
      JsonFields fields(parse_json(text, "f"));
      expect_format(fields, "frazil.plan", 3);
      fields.finish();
    });
  };
  EXPECT_EQ(take(R"({"format": "frazil.plan", "version": 3})"), "no error");
  EXPECT_EQ(take(R"({"format": "frazil.model", "version": 3})"),
            "f:1: found `\"frazil.model\"` at $.format, expected `\"frazil.plan\"`");
  EXPECT_EQ(take(R"({"format": "frazil.plan", "version": 4})"),
            "f:1: found `4` at $.version, expected version 3");
  EXPECT_EQ(take(R"({"format": "frazil.plan", "version": "3"})"),
            "f:1: found `\"3\"` at $.version, expected version 3");
}

TEST(JsonString, RoundTripsEveryText) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  const std::vector<std::string> pieces = {
      "a", "\"", "\\", "\n", "\x01", "\x7f", "\xc3\xa4", "/", "\xf0\x9f\x98\x80", "\t", " "};
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (std::uint64_t size = random() % 20; size > 0; --size) {
      text += pieces[random() % pieces.size()];
    }
    ASSERT_EQ(parse_json(json_string(text), "f").text(), text);
  }
}

TEST(JsonString, RefusesBytesThatAreNotUtf8) {
  EXPECT_EQ(message_of([] { json_string("a\xff"); }),
            "`a\\xff`: found bytes that are not UTF-8, expected UTF-8 text");
}

// Text that is cut or has a flipped byte gives a value or one InputError on one line, and never
// anything else.
TEST(Json, MeetsDamagedTextWithOneSentence) {
  const std::string whole =
      "{\"a\": [1, -2.5e3, true, null],\n \"b\\u00e4\": {\"c\": \"\xc3\xa4\\n\"},\n \"d\": "
      "false}\n";
  constexpr std::uint64_t kSeed = 13;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole.substr(0, 1 + random() % whole.size());
    for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    try {
      parse_json(text, "f");
    } catch (const InputError& error) {
      ++refused;
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      ASSERT_GE(error.line(), 1);
      ASSERT_LE(error.line(), 1 + std::count(text.begin(), text.end(), '\n'));
    }
  }
  EXPECT_GT(refused, 15'000);
}

}  // namespace
}  // namespace frazil
