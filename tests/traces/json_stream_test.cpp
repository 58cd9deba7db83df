#include "traces/json_stream.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "tests/traces/kineto_text.h"

namespace frazil {
namespace {

using nlohmann::json;

// The whole value, by the stream alone. Numbers as texts: the stream gives them as written.
json read_value(JsonStream& stream) {
  json value;
  switch (stream.peek()) {
    case '{':
      value = json::object();
      stream.enter_object();
      while (stream.next_member()) {
        const std::string key = stream.unescaped(stream.key());
        value[key] = read_value(stream);
      }
      return value;
    case '[':
      value = json::array();
      stream.enter_array();
      while (stream.next_item()) value.push_back(read_value(stream));
      return value;
    case '"':
      return stream.text();
    case 't':
    case 'f':
    case 'n':
      stream.skip();
      return "word";
    default:
      return std::string(stream.number());
  }
}

json read_all(JsonStream& stream) {
  json value = read_value(stream);
  stream.finish();
  return value;
}

std::string refusal(const std::string& text) {
  try {
    JsonStream stream(text, "t.json");
    stream.skip();
    stream.finish();
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

const std::string kText =
    "{\"a\" : [1, -2.50e+3, {\"b\": {}}, []],\n \"long\\u00e9 \\ud83d\\ude00\\n\":\"x\\\"\\\\y\",\n"
    " \"w\": [true, false, null], \"deep\": [[[[\"e\"]]]]\n}\n";
const json kValue = {{"a", {"1", "-2.50e+3", {{"b", json::object()}}, json::array()}},
                     {"long\u00e9 \U0001F600\n", "x\"\\y"},
                     {"w", {"word", "word", "word"}},
                     {"deep", {{{{"e"}}}}}};

TEST(JsonStream, WalksAText) {
  JsonStream stream(kText, "t.json");
  EXPECT_EQ(read_all(stream), kValue);
  EXPECT_EQ(stream.line(), 5);
}

TEST(JsonStream, SeesTheSameThroughAnyWindow) {
  const TraceFile plain(kText, "window.json");
  const TraceFile packed(pack(kText), "window.json.gz");
  for (std::size_t window = 1; window <= kText.size() + 1; ++window) {
    SCOPED_TRACE(window);
    JsonStream from_plain(plain.path(), window);
    ASSERT_EQ(read_all(from_plain), kValue);
    JsonStream from_packed(packed.path(), window);
    ASSERT_EQ(read_all(from_packed), kValue);
    JsonStream skipping(plain.path(), window);
    skipping.skip();
    ASSERT_NO_THROW(skipping.finish());
    ASSERT_EQ(skipping.line(), 5);
  }
}

TEST(JsonStream, RefusesEveryTextCutShort) {
  const std::string whole = kText.substr(0, kText.size() - 1);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(whole.substr(0, size));
    ASSERT_NE(refusal(whole.substr(0, size)), "taken");
  }
  EXPECT_EQ(refusal("{\"a\":\n"), "t.json:2: found the end of the text, expected a JSON value");
  EXPECT_EQ(refusal(whole), "taken");
}

TEST(JsonStream, NamesLineFoundAndExpected) {
  EXPECT_EQ(refusal("{\n\"a\" 1}"), "t.json:2: found `1}`, expected `:` after the key");
  EXPECT_EQ(refusal("{\n\n\"a\": tru }"), "t.json:3: found `tru`, expected a JSON value");
  EXPECT_EQ(refusal("[1 2]"), "t.json:1: found `2]`, expected `,` or `]`");
  EXPECT_EQ(refusal("{\"a\":1,}"), "t.json:1: found `}`, expected a key in double quotes");
  EXPECT_EQ(refusal("[1,]"), "t.json:1: found `]`, expected a JSON value");
  EXPECT_EQ(refusal("{} {}"), "t.json:1: found `{}`, expected nothing after the JSON value");
  EXPECT_EQ(refusal(""), "t.json:1: found the end of the text, expected a JSON value");
  EXPECT_EQ(refusal("\"a\nb\""),
            "t.json:1: found a control character in a string, expected its escape, such as `\\n`");
  for (const char* number : {"01", "+1", "1.", ".5", "1e", "--1", "-", "NaN", "Infinity"}) {
    EXPECT_NE(refusal(number), "taken") << number;
  }
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "taken");
  EXPECT_EQ(
      refusal(std::string(65, '[')),
      "t.json:1: found nesting deeper than 64, expected at most 64 arrays and objects in each "
      "other");
}

TEST(JsonStream, RefusesBadEscapesWhenAskedForText) {
  for (const char* text : {R"("\x")", R"("\u12")", R"("\u12g4")"}) {
    JsonStream stream(text, "t.json");
    EXPECT_THROW(stream.text(), InputError) << text;
  }
  JsonStream lone(R"("\ud83d!")", "t.json");
  EXPECT_EQ(lone.text(), "\uFFFD!");
}

TEST(JsonStream, RefusesAGzipFileCutAnywhere) {
  const std::string packed = pack(kText);
  for (std::size_t size = 2; size < packed.size(); ++size) {
    SCOPED_TRACE(size);
    const TraceFile cut(packed.substr(0, size), "cut.json.gz");
    EXPECT_THROW(
        {
          JsonStream stream(cut.path());
          stream.skip();
          stream.finish();
        },
        InputError);
  }
}

TEST(JsonStream, RefusesADamagedGzipFile) {
  std::string packed = pack(kText);
  packed[packed.size() / 2] = static_cast<char>(~packed[packed.size() / 2]);
  const TraceFile damaged(packed, "damaged.json.gz");
  EXPECT_THROW(
      {
        JsonStream stream(damaged.path());
        stream.skip();
        stream.finish();
      },
      InputError);
}

TEST(JsonStream, RefusesWhatIsNoFile) {
  EXPECT_THROW(JsonStream("/no/such/file.json"), InputError);
  JsonStream folder(std::filesystem::temp_directory_path());
  EXPECT_THROW(folder.skip(), InputError);
}

}  // namespace
}  // namespace frazil
