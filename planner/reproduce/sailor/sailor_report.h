#pragma once
// Compares predicted with measured iteration times of Sailor's plans: with nothing fitted; with the
// constants of each form (planner/reproduce/sailor/sailor_forms.h) fitted to all plans but the
// predicted one, and to all plans on other numbers of devices; and with the form that the other
// plans choose.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/reproduce/leave_one_out.h"
#include "planner/reproduce/sailor/sailor_forms.h"
#include "planner/reproduce/sailor/sailor_published.h"
#include "profiles/import/sailor_plan.h"
#include "profiles/units.h"

namespace frazil {

struct FormReport {
  std::string_view name;
  CrossValidation one_out;
  std::optional<CrossValidation> size_out;  // as chosen_by_size
  // The constants, by plan, fitted without this plan, and fitted to all plans.
  std::vector<std::vector<NamedConstant>> constants;
  std::vector<NamedConstant> from_all;
};

struct SailorReport {
  std::string model;
  std::string gpu;
  std::vector<SailorPlan> plans;
  std::vector<Duration> uncalibrated;  // by plan
  std::vector<FormReport> forms;       // in the order of list_forms()
  ChosenForms chosen;                  // plans are left out one by one
  // All plans on so many devices are left out together; none unless there are three such numbers.
  std::optional<ChosenForms> chosen_by_size;
  std::vector<Bytes> peak_memory;           // by plan, predicted
  std::vector<std::string> suspects;        // measured values that look copied
  std::optional<ErrorSummary> sailors_own;  // none: these are not the plans that came with Sailor
};

// Returns predicted / measured - 1.
double relative_error(Duration predicted, Duration measured);
ErrorSummary summarize_errors(const std::vector<SailorPlan>& plans,
                              const std::vector<Duration>& predicted);

// Predicts the plans of the folder and fits the constants. Throws InputError where a plan has no
// measured iteration, or there are fewer than three plans.
SailorReport make_sailor_report(const SailorFolder& folder);

std::string print_sailor_report(const SailorReport& report);
std::string sailor_report_json(const SailorReport& report);

}  // namespace frazil
