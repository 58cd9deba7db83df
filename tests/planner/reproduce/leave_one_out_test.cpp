// Tests fitting constants to all cases but one.

#include "planner/reproduce/leave_one_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace frazil {
namespace {

// Cases of which the i-th takes a x work[i] + b x calls[i], with a = 1.0, 1.1, ... 2.0 and b = 1,
// 2, ... 11 us. A third of the cases has no work, a third no calls.
struct Line {
  std::vector<std::int64_t> work;
  std::vector<std::int64_t> calls;

  Duration at(std::size_t i, const Choice& choice) const {
    const auto a = static_cast<std::int64_t>(10 + choice[0]);
    const auto b = static_cast<std::int64_t>(1 + choice[1]);
    return Duration{a * work[i] * 100 + b * calls[i] * 1000};
  }
  std::vector<Duration> all(const Choice& choice) const {
    std::vector<Duration> times;
    for (std::size_t i = 0; i < work.size(); ++i) times.push_back(at(i, choice));
    return times;
  }
  FittedModel model() const {
    return {.list_sizes = {11, 11}, .start = {0, 0}, .predict = [this](const Choice& choice) {
              return all(choice);
            }};
  }
};

Line make_line(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> number(1, 50);
  Line line;
  for (int i = 0; i < 9; ++i) {
    line.work.push_back(i % 3 == 0 ? 0 : number(random));
    line.calls.push_back(i % 3 == 1 ? 0 : number(random));
  }
  return line;
}

double loss_of(const std::vector<Duration>& predicted, const std::vector<Duration>& measured,
               std::size_t left_out) {
  double loss = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (i == left_out) continue;
    loss += std::abs(
        static_cast<double>(predicted[i].count()) / static_cast<double>(measured[i].count()) - 1);
  }
  return loss;
}

TEST(LeaveOneOut, FindsTheConstantsThatMadeTheMeasurements) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Line line = make_line(seed);
    const Choice truth = {seed % 11, (3 * seed) % 11};
    const std::vector<Duration> measured = line.all(truth);
    const CrossValidation validation = leave_one_out(line.model(), measured);
    for (const Choice& choice : validation.choices) EXPECT_EQ(choice, truth);
    EXPECT_EQ(validation.predicted, measured);
    EXPECT_EQ(validation.from_all, truth);
    EXPECT_EQ(validation.in_sample, measured);
  }
}

TEST(LeaveOneOut, NoCaseHasASayInItsOwnPrediction) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Line line = make_line(seed);
    std::vector<Duration> measured = line.all({5, 5});
    std::mt19937 random(seed);
    for (Duration& time : measured) time += time * static_cast<int>(random() % 30) / 100;
    const CrossValidation before = leave_one_out(line.model(), measured);
    const std::size_t changed = seed % measured.size();
    measured[changed] *= 7;
    const CrossValidation after = leave_one_out(line.model(), measured);
    EXPECT_EQ(after.choices[changed], before.choices[changed]);
    EXPECT_EQ(after.predicted[changed], before.predicted[changed]);
  }
}

TEST(LeaveOneOut, NoOtherValueOfOneConstantIsBetter) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Line line = make_line(seed);
    std::vector<Duration> measured = line.all({4, 7});
    std::mt19937 random(seed);
    for (Duration& time : measured) time += time * static_cast<int>(random() % 50) / 100;
    const CrossValidation validation = leave_one_out(line.model(), measured);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const double loss = loss_of(line.all(validation.choices[i]), measured, i);
      for (std::size_t constant = 0; constant < 2; ++constant) {
        for (std::size_t value = 0; value < 11; ++value) {
          Choice other = validation.choices[i];
          other[constant] = value;
          EXPECT_GE(loss_of(line.all(other), measured, i), loss - 1e-12);
        }
      }
    }
  }
}

TEST(LeaveGroupsOut, LeavesAllCasesOfAGroupOut) {
  const Line line = make_line(3);
  const std::vector<Duration> truth = line.all({5, 5});
  const std::vector<int> groups = {0, 0, 0, 1, 1, 1, 2, 2, 2};
  const CrossValidation before = leave_groups_out(line.model(), truth, groups);
  std::vector<Duration> measured = truth;
  for (std::size_t i = 3; i < 6; ++i) measured[i] *= 3;
  const CrossValidation after = leave_groups_out(line.model(), measured, groups);
  for (std::size_t i = 3; i < 6; ++i) {
    EXPECT_EQ(after.choices[i], before.choices[i]);
    EXPECT_EQ(after.predicted[i], truth[i]);
  }
  std::vector<int> apart = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(leave_groups_out(line.model(), measured, apart).choices,
            leave_one_out(line.model(), measured).choices);
}

// One form is the one that made the measurements, the other knows only the work.
TEST(ChosenForms, AreThoseThatPredictTheOtherCases) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Line line = make_line(seed);
    Line poor = line;
    poor.calls.assign(poor.calls.size(), 1);
    const std::vector<int> groups = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    std::vector<Duration> measured = line.all({4, 6});
    const ChosenForms chosen = choose_forms({poor.model(), line.model()}, measured, groups);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      EXPECT_EQ(chosen.forms[i], 1U);
      EXPECT_EQ(chosen.predicted[i], measured[i]);
    }
    // A case has no say in the form of its own prediction.
    const std::size_t changed = seed % measured.size();
    measured[changed] *= 5;
    const ChosenForms after = choose_forms({poor.model(), line.model()}, measured, groups);
    EXPECT_EQ(after.forms[changed], chosen.forms[changed]);
    EXPECT_EQ(after.predicted[changed], chosen.predicted[changed]);
  }
}

TEST(LeaveOneOut, AsksForEachChoiceOnce) {
  const Line line = make_line(1);
  std::vector<Choice> asked;
  FittedModel model = line.model();
  model.predict = [&](const Choice& choice) {
    asked.push_back(choice);
    return line.all(choice);
  };
  const CrossValidation validation = leave_one_out(model, line.all({2, 9}));
  EXPECT_EQ(validation.evaluated, asked.size());
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(std::adjacent_find(asked.begin(), asked.end()), asked.end());
}

}  // namespace
}  // namespace frazil
