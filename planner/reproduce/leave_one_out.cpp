#include "planner/reproduce/leave_one_out.h"

#include <cmath>
#include <map>
#include <optional>

#include "profiles/error.h"

namespace frazil {
namespace {

class Search {
 public:
  Search(const FittedModel& model, const std::vector<Duration>& measured)
      : model_(model), measured_(measured) {}

  const std::vector<Duration>& predict(const Choice& choice) {
    const auto [known, is_new] = predicted_.try_emplace(choice);
    if (is_new) known->second = model_.predict(choice);
    ENSURE(known->second.size() == measured_.size(), "a prediction for every case");
    return known->second;
  }

  Choice fit(std::optional<std::size_t> left_out) {
    left_out_ = left_out;
    best_ = model_.start;
    loss_ = find_loss(best_);
    while (try_single_values() || try_pairs()) {
    }
    return best_;
  }

  std::size_t evaluated() const { return predicted_.size(); }

 private:
  double find_loss(const Choice& choice) {
    const std::vector<Duration>& predicted = predict(choice);
    double loss = 0;
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      if (i == left_out_) continue;
      loss += std::abs(static_cast<double>(predicted[i].count()) /
                           static_cast<double>(measured_[i].count()) -
                       1);
    }
    return loss;
  }

  // Takes a choice only if it is better by more than rounding, which would make the search path
  // arbitrary.
  bool take_if_better(const Choice& choice) {
    constexpr double kLeast = 1e-12;
    const double loss = find_loss(choice);
    if (loss >= loss_ - kLeast) return false;
    loss_ = loss;
    best_ = choice;
    return true;
  }

  bool try_single_values() {
    bool better = false;
    for (std::size_t constant = 0; constant < best_.size(); ++constant) {
      Choice choice = best_;
      for (std::size_t value = 0; value < model_.list_sizes[constant]; ++value) {
        choice[constant] = value;
        better = take_if_better(choice) || better;
      }
    }
    return better;
  }

  // Moves two constants at once, as each alone may make the fit worse.
  bool try_pairs() {
    bool better = false;
    for (std::size_t a = 0; a < best_.size(); ++a) {
      for (std::size_t b = a + 1; b < best_.size(); ++b) {
        for (const int by_a : {-2, -1, 1, 2}) {
          for (const int by_b : {-2, -1, 1, 2}) {
            Choice choice = best_;
            if (move(choice, a, by_a) && move(choice, b, by_b)) {
              better = take_if_better(choice) || better;
            }
          }
        }
      }
    }
    return better;
  }

  bool move(Choice& choice, std::size_t constant, int places) const {
    const auto place = static_cast<std::ptrdiff_t>(choice[constant]) + places;
    if (place < 0 || place >= static_cast<std::ptrdiff_t>(model_.list_sizes[constant])) {
      return false;
    }
    choice[constant] = static_cast<std::size_t>(place);
    return true;
  }

  const FittedModel& model_;
  const std::vector<Duration>& measured_;
  std::map<Choice, std::vector<Duration>> predicted_;
  std::optional<std::size_t> left_out_;
  Choice best_;
  double loss_ = 0;
};

}  // namespace

CrossValidation leave_one_out(const FittedModel& model, const std::vector<Duration>& measured) {
  ENSURE(measured.size() >= 2, "a case to leave out and one to fit to");
  Search search(model, measured);
  CrossValidation validation;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    validation.choices.push_back(search.fit(i));
    validation.predicted.push_back(search.predict(validation.choices.back())[i]);
  }
  validation.from_all = search.fit(std::nullopt);
  validation.in_sample = search.predict(validation.from_all);
  validation.evaluated = search.evaluated();
  return validation;
}

}  // namespace frazil
