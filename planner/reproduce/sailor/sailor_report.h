#pragma once
// Compares predicted with measured iteration times of Sailor's plans: once with nothing fitted,
// once with constants that were fitted to all plans but the predicted one.

#include <optional>
#include <string>
#include <vector>

#include "planner/reproduce/leave_one_out.h"
#include "planner/reproduce/sailor/sailor_prediction.h"
#include "planner/reproduce/sailor/sailor_published.h"
#include "profiles/import/sailor_plan.h"
#include "profiles/units.h"

namespace frazil {

struct SailorReport {
  std::string model;
  std::string gpu;
  std::vector<SailorPlan> plans;
  std::vector<Duration> uncalibrated;  // by plan
  CrossValidation validation;
  std::vector<SailorConstants> constants;   // by plan: fitted without this plan
  SailorConstants from_all;                 // fitted to all plans
  std::vector<Bytes> peak_memory;           // by plan, predicted
  std::vector<std::string> suspects;        // measured values that look copied
  std::optional<ErrorSummary> sailors_own;  // none: these are not the plans that came with Sailor
};

// Returns predicted / measured - 1.
double relative_error(Duration predicted, Duration measured);
ErrorSummary summarize_errors(const std::vector<SailorPlan>& plans,
                              const std::vector<Duration>& predicted);

// Predicts the plans of the folder and fits the constants. Throws InputError where a plan has no
// measured iteration, or there are fewer than two plans.
SailorReport make_sailor_report(const SailorFolder& folder);

std::string print_sailor_report(const SailorReport& report);
std::string sailor_report_json(const SailorReport& report);

}  // namespace frazil
