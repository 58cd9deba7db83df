#pragma once
// Writes what a benchmark concludes from an interval, in one word, and what it tells of the
// machine.

#include <optional>
#include <string>

namespace frazil {

// Judges a value that should be at most the bar: "met" if all of [low, high] is at most the bar,
// "missed" if none of it is, else "undecided".
std::string verdict_at_most(double low, double high, double bar);
// Judges a value that should be at least the bar, in the same words.
std::string verdict_at_least(double low, double high, double bar);

// Writes "other programs kept 0.05 cores busy", from what a ForeignLoad has found.
std::string to_load_text(const std::optional<double>& cores);

}  // namespace frazil
