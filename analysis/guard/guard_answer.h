#pragma once
// Tells people and programs what a guard found, and takes it to an exit code.

#include <string>

#include "analysis/guard/baseline.h"
#include "analysis/guard/movements.h"
#include "profiles/error.h"

namespace frazil {

struct GuardReport {
  std::string baseline_file;
  Provenance was;  // fingerprints
  Provenance is;
  std::vector<Movement> movements;  // of the whole trace, or of the first measurement
  GuardConclusion conclusion;
  std::vector<GuardedValue> missing = {};  // of the baseline, and not of every block today
  std::vector<GuardedValue> added = {};    // of today, and not of the baseline
};

// Returns a table of what was compared, a sentence for each alarm, for each thing that is slower
// and was not confirmed, for each that one of both days lacks and for each difference of
// fingerprints but the date, and the verdict, with its reason if that is INCONCLUSIVE. Sentences
// and table have the same numbers.
std::string print_guard(const GuardReport& report);
std::string guard_json(const GuardReport& report);

// Writes a baseline, and answers so. With a reason against it (refuse_good_day()) nothing is
// written, and the answer is INCONCLUSIVE for that reason. Nothing is compared.
ExitCode keep_baseline(const Baseline& baseline, const std::string& reason, const std::string& file,
                       bool as_json);

ExitCode exit_code_of(Verdict verdict);

}  // namespace frazil
