#include "traces/json_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "profiles/error.h"
#include "tests/traces/kineto/kineto_text.h"

namespace frazil {
namespace {

using nlohmann::json;

// Reads a whole value into the type of the other library.
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
      stream.skip();
      return true;
    case 'f':
      stream.skip();
      return false;
    case 'n':
      stream.skip();
      return nullptr;
    default:
      return json::parse(stream.number());
  }
}

json read_all(JsonStream& stream) {
  json value = read_value(stream);
  stream.finish();
  return value;
}

std::string refusal_of_json(const std::string& text) {
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
const json kValue = {{"a", {1, -2500.0, {{"b", json::object()}}, json::array()}},
                     {"long\u00e9 \U0001F600\n", "x\"\\y"},
                     {"w", {true, false, nullptr}},
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

// Makes values with runs of space and of plain characters from none to some blocks long, and with
// escapes anywhere.
class RandomText {
 public:
  explicit RandomText(std::uint64_t seed) : random_(seed) {}

  std::string make(int depth) {
    add_space();
    const std::uint64_t kind = random_() % (depth == 0 ? 3 : 5);
    if (kind == 0) add_string();
    if (kind == 1) add_number();
    if (kind == 2) text_ += std::array{"true", "false", "null"}[random_() % 3];
    if (kind > 2) add_list(kind == 3, depth);
    add_space();
    return text_;
  }

 private:
  void add_space() {
    const std::size_t longest = random_() % 4 == 0 ? 40 : 2;
    for (std::size_t left = random_() % (longest + 1); left > 0; --left) {
      text_ += " \t\r\n"[random_() % 4];
    }
  }

  void add_string() {
    text_ += '"';
    for (std::size_t left = random_() % 50; left > 0; --left) {
      if (random_() % 16 == 0) {
        text_ += std::array{"\\\"", "\\\\", "\\n", "\\u00e9", "\u00e9"}[random_() % 5];
      } else {
        text_ += "ab{}[]:, 01"[random_() % 11];
      }
    }
    text_ += '"';
  }

  void add_number() {
    text_ += std::to_string(static_cast<std::int64_t>(random_()) >> random_() % 64);
    if (random_() % 2 == 0) text_ += "." + std::to_string(random_() % 1000);
    if (random_() % 8 == 0) text_ += std::array{"e7", "E-12", "e+3"}[random_() % 3];
  }

  void add_list(bool is_object, int depth) {
    text_ += is_object ? '{' : '[';
    const std::uint64_t items = random_() % 5;
    if (items == 0) add_space();
    for (std::uint64_t i = 0; i < items; ++i) {
      if (i > 0) text_ += ',';
      if (is_object) {
        add_space();
        text_ += '"' + std::to_string(i);  // keys differ
        const std::size_t quote = text_.size();
        add_string();
        text_.erase(quote, 1);
        add_space();
        text_ += ':';
      }
      make(depth - 1);
    }
    text_ += is_object ? '}' : ']';
  }

  std::mt19937_64 random_;
  std::string text_;
};

TEST(JsonStream, ReadsRandomTextsAsAnotherLibraryDoes) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const std::string text = RandomText(seed).make(4);
    const int lines = 1 + static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    const json value = json::parse(text);
    JsonStream in_memory(text, "t.json");
    ASSERT_EQ(read_all(in_memory), value) << text;
    ASSERT_EQ(in_memory.line(), lines);
    const TraceFile file(text, "random.json");
    for (const std::size_t window : {1U, 3U, 17U, 100U}) {
      JsonStream reading(file.path(), window);
      ASSERT_EQ(read_all(reading), value) << text;
      ASSERT_EQ(reading.line(), lines);
      JsonStream skipping(file.path(), window);
      skipping.skip();
      ASSERT_NO_THROW(skipping.finish());
      ASSERT_EQ(skipping.line(), lines);
    }
  }
}

// The line is asked for or not on the way, through a window that moves on many times.
TEST(JsonStream, KnowsTheLineOfEveryItem) {
  std::string text = "[";
  for (int i = 1; i <= 2000; ++i) text += std::string(i % 5 == 0 ? 3 : 1, '\n') + "7,";
  text += "]";
  const TraceFile file(text, "lines.json");
  for (const std::size_t window : {64U, 1000U, 1U << 20}) {
    JsonStream stream(file.path(), window);
    stream.enter_array();
    int line = 1;
    for (int i = 1; i <= 2000; ++i) {
      ASSERT_TRUE(stream.next_item());
      stream.skip();
      line += i % 5 == 0 ? 3 : 1;
      if (i % 7 == 0 || i > 1990) {
        ASSERT_EQ(stream.line(), line);
      }
    }
    try {
      stream.next_item();
      stream.skip();
      FAIL() << "an item behind the last comma";
    } catch (const InputError& error) {
      EXPECT_EQ(error.line(), 2801);
    }
  }
}

TEST(JsonStream, KnowsAtEveryDepthWhetherACommaIsDue) {
  std::string text = "0";
  std::string bad = "0";
  for (int depth = 1; depth <= 64; ++depth) {
    text = "[" + text + ",1]";
    bad = depth == 3 ? "[" + bad + " 1]" : "[" + bad + ",1]";
  }
  EXPECT_EQ(refusal_of_json(text), "taken");
  EXPECT_NE(refusal_of_json(bad).find("found `1]"), std::string::npos) << refusal_of_json(bad);
  std::string siblings = "[{}";
  for (int i = 0; i < 65; ++i) siblings += ",[{}]";
  EXPECT_EQ(refusal_of_json(siblings + "]"), "taken");
}

TEST(JsonStream, RefusesEveryTextCutShort) {
  const std::string whole = kText.substr(0, kText.size() - 1);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(whole.substr(0, size));
    ASSERT_NE(refusal_of_json(whole.substr(0, size)), "taken");
  }
  EXPECT_EQ(refusal_of_json("{\"a\":\n"),
            "t.json:2: found the end of the text, expected a JSON value");
  EXPECT_EQ(refusal_of_json(whole), "taken");
}

TEST(JsonStream, NamesLineFoundAndExpected) {
  EXPECT_EQ(refusal_of_json("{\n\"a\" 1}"), "t.json:2: found `1}`, expected `:` after the key");
  EXPECT_EQ(refusal_of_json("{\n\n\"a\": tru }"), "t.json:3: found `tru`, expected a JSON value");
  EXPECT_EQ(refusal_of_json("[1 2]"), "t.json:1: found `2]`, expected `,` or `]`");
  EXPECT_EQ(refusal_of_json("{\"a\":1,}"), "t.json:1: found `}`, expected a key in double quotes");
  EXPECT_EQ(refusal_of_json("[1,]"), "t.json:1: found `]`, expected a JSON value");
  EXPECT_EQ(refusal_of_json("{} {}"),
            "t.json:1: found `{}`, expected nothing after the JSON value");
  EXPECT_EQ(refusal_of_json(""), "t.json:1: found the end of the text, expected a JSON value");
  EXPECT_EQ(refusal_of_json("\"a\nb\""),
            "t.json:1: found a control character in a string, expected its escape, such as `\\n`");
  for (const char* number : {"01", "+1", "1.", ".5", "1e", "--1", "-", "NaN", "Infinity"}) {
    EXPECT_NE(refusal_of_json(number), "taken") << number;
  }
  EXPECT_EQ(refusal_of_json(std::string(64, '[') + std::string(64, ']')), "taken");
  EXPECT_EQ(
      refusal_of_json(std::string(65, '[')),
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
