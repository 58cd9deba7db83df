#include "planner/reproduce/leave_one_out.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

double find_error(Duration predicted, Duration measured) {
  return std::abs(static_cast<double>(predicted.count()) / static_cast<double>(measured.count()) -
                  1);
}

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

  // Fits to the cases that are not left out.
  Choice fit(std::vector<bool> left_out) {
    left_out_ = std::move(left_out);
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
      if (!left_out_[i]) loss += find_error(predicted[i], measured_[i]);
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
  std::vector<bool> left_out_;  // by case
  Choice best_;
  double loss_ = 0;
};

// Marks the cases of one group, and those of another one.
std::vector<bool> mark(const std::vector<int>& groups, int group, std::optional<int> other = {}) {
  std::vector<bool> marked;
  for (const int own : groups) marked.push_back(own == group || own == other);
  return marked;
}

// Returns the sum of the errors of all cases but those of `group`, each predicted without its own
// group and `group`.
double find_loss_beside(Search& search, const std::vector<Duration>& measured,
                        const std::vector<int>& groups, int group) {
  double loss = 0;
  for (const int other : std::set<int>(groups.begin(), groups.end())) {
    if (other == group) continue;
    const std::vector<Duration>& predicted = search.predict(search.fit(mark(groups, group, other)));
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (groups[i] == other) loss += find_error(predicted[i], measured[i]);
    }
  }
  return loss;
}

}  // namespace

CrossValidation leave_one_out(const FittedModel& model, const std::vector<Duration>& measured) {
  std::vector<int> groups(measured.size());
  std::iota(groups.begin(), groups.end(), 0);
  return leave_groups_out(model, measured, groups);
}

CrossValidation leave_groups_out(const FittedModel& model, const std::vector<Duration>& measured,
                                 const std::vector<int>& groups) {
  ENSURE(std::set<int>(groups.begin(), groups.end()).size() >= 2,
         "a case to leave out and one to fit to");
  Search search(model, measured);
  std::map<int, Choice> choices;
  CrossValidation validation;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const auto [choice, is_new] = choices.try_emplace(groups[i]);
    if (is_new) choice->second = search.fit(mark(groups, groups[i]));
    validation.choices.push_back(choice->second);
    validation.predicted.push_back(search.predict(choice->second)[i]);
  }
  validation.from_all = search.fit(std::vector<bool>(measured.size(), false));
  validation.in_sample = search.predict(validation.from_all);
  validation.evaluated = search.evaluated();
  return validation;
}

ChosenForms choose_forms(const std::vector<FittedModel>& models,
                         const std::vector<Duration>& measured, const std::vector<int>& groups) {
  const std::set<int> all(groups.begin(), groups.end());
  ENSURE(!models.empty() && all.size() >= 3, "a form, and groups to leave out two of");
  std::vector<Search> searches;
  for (const FittedModel& model : models) searches.emplace_back(model, measured);
  ChosenForms chosen;
  chosen.forms.resize(measured.size());
  chosen.predicted.resize(measured.size());
  for (const int group : all) {
    std::vector<double> losses;
    for (Search& search : searches) {
      losses.push_back(find_loss_beside(search, measured, groups, group));
    }
    const auto form =
        static_cast<std::size_t>(std::min_element(losses.begin(), losses.end()) - losses.begin());
    Search& search = searches[form];
    const std::vector<Duration>& predicted = search.predict(search.fit(mark(groups, group)));
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (groups[i] != group) continue;
      chosen.forms[i] = form;
      chosen.predicted[i] = predicted[i];
    }
  }
  return chosen;
}

}  // namespace frazil
