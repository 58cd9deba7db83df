#pragma once
// What a benchmark concludes from an interval, in one word, and what it tells of the machine.

#include <optional>
#include <string>

namespace frazil {

// Of what should be at most the bar: "met" where all of the interval is, "missed" where none of it
// is, else "undecided".
std::string verdict_at_most(double low, double high, double bar);
// The same of what should be at least the bar.
std::string verdict_at_least(double low, double high, double bar);

// "other programs kept 0.05 cores busy", of what a ForeignLoad has found.
std::string to_load_text(const std::optional<double>& cores);

}  // namespace frazil
