#pragma once
// Random masks with gaps, and random plans of the small models under them.

#include <random>
#include <string>
#include <vector>

#include "tests/exec/models/model_plans.h"

namespace frazil {

// Returns the models whose blocks may be frozen one by one.
std::vector<TestModel> models_with_gaps();

// Freezes any blocks but the last, with gaps or without; blocks that never train stay frozen.
std::string random_mask(const TestModel& model, std::mt19937& random);

class RandomForms {
 public:
  explicit RandomForms(unsigned seed) : random_(seed) {}

  // Draws a number from 0 to below `end`.
  int draw(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  // Draws a mask in which some frozen block has an active one before it; blocks that never train
  // stay frozen.
  std::string mask(const TestModel& model);
  // Draws any schedule with a flush but Varuna, with cuts anywhere, that takes the model.
  PlanForm form(const TestModel& model, const std::string& mask);

 private:
  std::vector<int> cuts(int stages, int layers);

  std::mt19937 random_;
};

}  // namespace frazil
