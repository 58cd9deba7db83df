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
  std::vector<Movement> movements;  // of the first block
  GuardConclusion conclusion;
  std::vector<GuardedValue> missing = {};  // of the baseline, and not of every block today
  std::vector<GuardedValue> added = {};    // of today, and not of the baseline
};

// Returns a table of what was compared, a sentence for each alarm, for each thing that the second
// block did not confirm, for each that one of both days lacks and for each difference of
// fingerprints but the date, and the verdict, with its reason if that is INCONCLUSIVE.
std::string print_guard(const GuardReport& report);
std::string guard_json(const GuardReport& report);

// Writes a baseline, and answers so. One that no later day could be compared with
// (find_unsteadiness()) is not written, and ends as INCONCLUSIVE with the reason, to which `more`
// adds a clause. Nothing is compared.
ExitCode keep_baseline(const Baseline& baseline, const std::string& file, bool as_json,
                       const std::string& more = "");

ExitCode exit_code_of(Verdict verdict);

}  // namespace frazil
