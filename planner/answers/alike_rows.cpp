#include "planner/answers/alike_rows.h"

#include <fmt/format.h>

#include <map>

#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kMostUnfolded = 16;

std::string name_group(std::span<const std::string> names, const std::vector<std::size_t>& group) {
  const std::string& first = names[group.front()];
  if (group.size() == 1) return first;
  const std::string& second = names[group[1]];
  if (group.size() == 2) return fmt::format("{}, {}", first, second);
  const bool is_run = group.back() - group.front() + 1 == group.size();
  return is_run ? fmt::format("{} to {} ({})", first, names[group.back()], group.size())
                : fmt::format("{}, {}, ... ({})", first, second, group.size());
}

}  // namespace

std::vector<AlikeRow> fold_alike_rows(std::span<const std::string> names,
                                      std::span<const std::string> cells) {
  ENSURE(names.size() == cells.size(), "cells of every device");
  std::vector<AlikeRow> rows;
  if (names.size() <= kMostUnfolded) {
    for (std::size_t d = 0; d < names.size(); ++d) rows.push_back({names[d], d});
    return rows;
  }
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t d = 0; d < names.size(); ++d) {
    const auto [place, is_new] = known.try_emplace(cells[d], groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(d);
  }
  for (const std::vector<std::size_t>& group : groups) {
    rows.push_back({name_group(names, group), group.front()});
  }
  return rows;
}

std::string tell_folded(std::span<const AlikeRow> rows, std::size_t devices) {
  if (rows.size() == devices) return "";
  return fmt::format("devices whose rows are alike share one; --json lists all {}\n", devices);
}

}  // namespace frazil
