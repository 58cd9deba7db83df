#include "exec/state/parameter_groups.h"

#include <gtest/gtest.h>

#include <random>

#include "exec/models/vit.h"

namespace frazil {
namespace {

// The definition, tried out letter by letter.
bool matches_by_trial(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return name.empty();
  const std::string rest = pattern.substr(1);
  if (pattern[0] == '*') {
    return matches_by_trial(rest, name) ||
           (!name.empty() && matches_by_trial(pattern, name.substr(1)));
  }
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) &&
         matches_by_trial(rest, name.substr(1));
}

TEST(ParameterGroups, MatchAsPatternsOfFilesDo) {
  std::mt19937 random(3);
  const auto draw = [&](const std::string& letters, std::size_t most) {
    std::string text;
    for (std::size_t length = random() % (most + 1); length > 0; --length) {
      text += letters[random() % letters.size()];
    }
    return text;
  };
  int matched = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    const std::string pattern = draw("ab*?.", 6);
    const std::string name = draw("ab.", 8);
    const bool expected = matches_by_trial(pattern, name);
    EXPECT_EQ(matches(pattern, name), expected) << pattern << " and " << name;
    if (expected) ++matched;
  }
  EXPECT_GT(matched, 500);
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*b", std::string(5'000, 'a'))) << "and that at once";
}

std::vector<ParameterGroup> sample_groups() {
  return {{"*.bias", 0, 1}, {"classifier.*", 0.5, 10}, {"*layernorm*", 0, 1}};
}

TEST(ParameterGroups, GiveEachParameterTheFirstGroupThatMatches) {
  const ModelSpec model = make_vit({.blocks = 1});
  const auto rules = [&](int layer) {
    return find_rules(sample_groups(), 0.2, model, LayerId{layer});
  };
  const ParameterRule plain{0.2, 1};
  const ParameterRule bare{0, 1};
  EXPECT_EQ(rules(0), (std::vector<ParameterRule>{plain, bare, plain, plain}));
  EXPECT_EQ(rules(1), (std::vector<ParameterRule>{bare, bare, plain, bare, plain, bare}));
  EXPECT_EQ(rules(3), (std::vector<ParameterRule>{bare, bare, {0.5, 10}, bare}));
  EXPECT_TRUE(find_rules({}, 0.2, model, LayerId{0}).empty());
}

TEST(ParameterGroups, LeaveOutWhatDoesNotTrain) {
  ModelSpec model = make_vit({.blocks = 1});
  model.layers[3].parameters[1].trainable = false;
  EXPECT_EQ(find_rules(sample_groups(), 0.2, model, LayerId{3}),
            (std::vector<ParameterRule>{{0, 1}, {0.5, 10}, {0, 1}}));
}

// Every copy of a tied parameter must change alike, whatever its own layer calls it.
TEST(ParameterGroups, TreatATiedParameterByItsFirstName) {
  ModelSpec model = make_vit({.blocks = 1});
  model.layers[0].parameters = {{"table.weight", {4, 4}, 1, 0, "table"}};
  model.layers[3].parameters = {{"classifier.weight", {4, 4}, 1, 0, "table"}};
  const std::vector<ParameterRule> expected{{0.2, 1}};
  EXPECT_EQ(find_rules(sample_groups(), 0.2, model, LayerId{0}), expected);
  EXPECT_EQ(find_rules(sample_groups(), 0.2, model, LayerId{3}), expected);
}

TEST(ParameterGroups, TellOfOneThatMatchesNothing) {
  const ModelSpec model = make_vit({.blocks = 1});
  EXPECT_EQ(find_unmatched(sample_groups(), model), std::nullopt);
  EXPECT_EQ(find_unmatched({{"*", 0, 1}, {"vit.?ncoder.*", 0, 1}, {"bias", 0, 1}}, model), 2U);
}

TEST(ParameterGroups, TellOfThoseThatChangeNothing) {
  ModelSpec model = make_vit({.blocks = 1});
  model.layers[0].parameters = {{"table.weight", {4, 4}, 1, 0, "table"}};
  model.layers[3].parameters.push_back({"lm_head.weight", {4, 4}, 1, 0, "table"});
  model.layers[3].parameters[3].trainable = false;
  EXPECT_TRUE(tell_idle_groups({}, model).empty());
  EXPECT_TRUE(tell_idle_groups(sample_groups(), model).empty());
  const std::string changes_nothing = "` changes nothing: ";
  // A group is idle where earlier ones together have what it matches, and not where one is left.
  std::vector<ParameterGroup> groups;
  for (const char* const match : {"*.bias", "classifier.*", "vit.layernorm.weight", "lm_*",
                                  "classifier.bias", "vit.layernorm.*", "*layernorm*"}) {
    groups.push_back({.match = match});
  }
  EXPECT_EQ(tell_idle_groups(groups, model),
            (std::vector<std::string>{"the parameter group `lm_*" + changes_nothing +
                                          "what it matches is tied to a parameter of another name",
                                      "the parameter group `classifier.bias" + changes_nothing +
                                          "none of the parameters that it matches is trained",
                                      "the parameter group `vit.layernorm.*" + changes_nothing +
                                          "groups before it have all parameters that it matches"}));
  model.layers[3].parameters[3].trainable = true;
  EXPECT_EQ(tell_idle_groups({{"*", 0, 1}, {"table.*", 0, 1}}, model).size(), 1U);
}

}  // namespace
}  // namespace frazil
