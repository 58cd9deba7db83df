#include "profiles/known_names.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace frazil {
namespace {

constexpr std::size_t kLongestName = 64;
constexpr std::size_t kMostEdits = 3;
constexpr std::size_t kShortestBegin = 3;
constexpr char kBetweenWords = '-';

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string lower(std::string_view name) {
  std::string result(name);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char letter) { return lower(letter); });
  return result;
}

std::size_t allowed_edits(std::string_view a, std::string_view b) {
  // Two edits in five bytes: "alfa" for "alpha".
  return std::min(kMostEdits, std::max(a.size(), b.size()) * 2 / 5);
}

}  // namespace

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char left, char right) { return lower(left) == lower(right); });
}

std::size_t count_edits(std::string_view a, std::string_view b) {
  const std::string from = lower(a);
  const std::string to = lower(b);
  // Row i has the distances of the first i bytes of `from` to each begin of `to`.
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(to.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::vector<std::size_t> row = {i};
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      std::size_t least = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool is_swap = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (is_swap) least = std::min(least, before_last[j - 2] + 1);
      row.push_back(least);
    }
    before_last = std::exchange(last, std::move(row));
  }
  return last.back();
}

std::string_view nearest_name(std::string_view found, std::span<const std::string_view> known) {
  if (found.empty() || found.size() > kLongestName) return "";
  std::string_view nearest;
  std::size_t least = kMostEdits + 1;
  for (const std::string_view name : known) {
    if (name.size() > kLongestName) continue;
    const std::size_t edits = count_edits(found, name);
    if (edits > allowed_edits(found, name) || edits >= least) continue;
    nearest = name;
    least = edits;
  }
  if (least <= 1 || found.size() < kShortestBegin) return nearest;
  const auto begins_so = [&](std::string_view name) {
    return is_same_name(found, name.substr(0, found.size()));
  };
  // Whoever leaves out a whole word made no slip, so edits do not tell which name was meant.
  const auto by_words = std::find_if(known.begin(), known.end(), [&](std::string_view name) {
    return begins_so(name) && name.size() > found.size() && name[found.size()] == kBetweenWords;
  });
  if (by_words != known.end()) return *by_words;
  if (!nearest.empty()) return nearest;
  const auto longer = std::find_if(known.begin(), known.end(), begins_so);
  return longer == known.end() ? "" : *longer;
}

std::string did_you_mean(std::string_view found, std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(found, known);
  return nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?";
}

}  // namespace frazil
