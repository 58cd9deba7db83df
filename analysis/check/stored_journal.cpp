#include "analysis/check/stored_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "analysis/check/hash_stream.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

constexpr std::size_t kWidth = 64;
constexpr std::string_view kName = "frazil.step_journal v";
// Version 1 has steps alone.
constexpr std::string_view kFirstWords = "frazil.step_journal v2        ";
constexpr std::string_view kFirstWordsOf1 = "frazil.step_journal v1        ";

struct Line {
  Step step = 0;
  std::string word;  // "weights", or the 16 digits of a loss
  std::uint64_t value = 0;
};

std::optional<Line> split(std::string_view text) {
  Line line;
  const auto step = std::from_chars(text.data(), text.data() + 12, line.step);
  const auto value = read_hex(text.substr(30, 16));
  if (step.ptr != text.data() + 12 || line.step < 0 || !value) return std::nullopt;
  line.word = text.substr(13, 16);
  line.word.erase(line.word.find_last_not_of(' ') + 1);
  line.value = *value;
  return line;
}

// Returns the hash of a line that holds.
std::optional<std::uint64_t> check_line(std::string_view text, std::uint64_t seed) {
  const auto stated = read_hex(text.substr(47, 16));
  const bool holds = stated && text[63] == '\n' && *stated == hash_of(text.substr(0, 47), seed);
  return holds ? stated : std::nullopt;
}

// Returns whether the line says what it can say at its place.
bool take(const Line& line, StoredJournal& journal) {
  if (line.word == "weights") {
    return line.step <= journal.steps && journal.weights.emplace(line.step, line.value).second;
  }
  if (line.word == "kernels" || line.word == "other-kernels") {
    if (line.step > journal.steps) return false;
    journal.kernels = line.value;
    if (line.word == "kernels") return true;
    journal.other_bits_from.push_back(line.step);
    journal.records.erase(journal.records.lower_bound(line.step), journal.records.end());
    journal.weights.erase(journal.weights.upper_bound(line.step), journal.weights.end());
    journal.steps = line.step;
    return true;
  }
  if (line.step != journal.steps) return false;
  if (line.word == "lost") {
    if (line.value == 0 || line.value > 999'999'999'999) return false;
    journal.steps += static_cast<Step>(line.value);
    return true;
  }
  const auto loss = read_hex(line.word);
  if (!loss) return false;
  journal.records[line.step] = {*loss, line.value};
  ++journal.steps;
  return true;
}

}  // namespace

StoredJournal read_stored_journal(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  const std::string_view all(text);
  StoredJournal journal;
  const auto begin = all.size() < kWidth ? std::nullopt : check_line(all.substr(0, kWidth), 0);
  const auto run = begin ? read_hex(all.substr(30, 16)) : std::nullopt;
  const bool is_version_1 = text.starts_with(kFirstWordsOf1);
  if (!run || !(is_version_1 || text.starts_with(kFirstWords))) {
    const bool is_other = run && text.starts_with(kName);
    journal.problems.push_back(is_other ? "it is of another version than 1 and 2"
                                        : "its first line does not hold");
    return journal;
  }
  if (is_version_1) {
    journal.notes.push_back("it is of version 1, which has no hashes of weights and kernels");
  }
  journal.run_hash = *run;
  std::uint64_t seed = *begin;
  std::size_t place = kWidth;
  for (; place + kWidth <= text.size(); place += kWidth) {
    const std::string_view line = all.substr(place, kWidth);
    const auto hash = check_line(line, seed);
    const auto parts = hash ? split(line) : std::nullopt;
    if (!parts || !take(*parts, journal)) break;
    seed = *hash;
  }
  journal.lost = journal.steps - static_cast<Step>(journal.records.size());
  if (journal.lost > 0) {
    journal.notes.push_back(fmt::format("it has no record of {} of its steps", journal.lost));
  }
  const std::size_t left = text.size() - place;
  if (left > kWidth) {
    journal.problems.push_back(fmt::format("line {} does not hold, with {} bytes behind it",
                                           place / kWidth + 1, left - kWidth));
  } else if (left > 0) {
    journal.notes.push_back(
        fmt::format("its last {} bytes are torn, as a crash leaves them", left));
  }
  return journal;
}

}  // namespace frazil
