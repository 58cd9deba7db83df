#pragma once
// Answers what an ablation found, for people and for programs.

#include <string>

#include "analysis/ablation/ablation.h"
#include "analysis/tables/table.h"

namespace frazil {

// Returns a row for each arm: speed over `unfrozen` with its interval, predicted speed and error of
// the predicted time and what it was predicted from (where something was predicted), accuracy,
// difference to `unfrozen` with its interval, verdict, device seconds.
Table tabulate_arms(const Ablation& ablation);
// Returns the verdict of an arm in words: "non-inferior, better than shorter".
std::string tell_verdict(const ArmRow& row);

std::string to_text(const Ablation& ablation);  // the table and the notes
std::string to_json(const Ablation& ablation);  // one object
// Returns a row for each run, in the order of seeds and then arms, under a row of names.
std::string to_csv(const Ablation& ablation);

}  // namespace frazil
