#include "planner/answers/error_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace frazil {
namespace {

using Json = nlohmann::json;

TEST(ErrorJson, SaysCodeAndSentence) {
  EXPECT_EQ(error_json(ExitCode::kInfeasible, "frazil plan: nothing fits"),
            "{\"error\":{\"code\":3,\"sentence\":\"frazil plan: nothing fits\"}}\n");
}

TEST(ErrorJson, OfBadInputSaysWhereWhatWasFoundAndWhatWasExpected) {
  const InputError error("plan.json", 12, "an object", "a number");
  EXPECT_EQ(Json::parse(error_json("frazil plan: it", error)),
            Json::parse(R"({"error": {"code": 2, "sentence": "frazil plan: it",
                "file": "plan.json", "line": 12, "found": "an object", "expected": "a number"}})"));
}

TEST(ErrorJson, HasNoLineWhereThereIsNone) {
  const InputError error("command line", 0, "no --out", "it to be given");
  EXPECT_FALSE(Json::parse(error_json("it", error)).at("error").contains("line"));
}

TEST(ErrorJson, OfTheSystemHasItsCode) {
  const InputError error("out.json", 0, "the error", "a place", ExitCode::kStorage);
  EXPECT_EQ(Json::parse(error_json("it", error)).at("error").at("code"), 8);
}

TEST(ErrorJson, IsJsonWhateverANameHolds) {
  const InputError error("a\x1b\xff\n", 0, "\x80", "\"");
  const Json answer = Json::parse(error_json("\x07\xfe", error)).at("error");
  EXPECT_EQ(answer.at("file"), "a\\x1b\\xff\\x0a");
  EXPECT_EQ(answer.at("sentence"), "\\x07\\xfe");
}

}  // namespace
}  // namespace frazil
