#include "exec/checkpoint/journal_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kLine = kJournalLineBytes;
constexpr std::size_t kHash = 47;    // where the hash of a line begins, after a space
constexpr std::size_t kFirst = 13;   // where the two numbers of a line begin
constexpr std::size_t kSecond = 30;  // after the step
constexpr std::size_t kNumber = 16;
constexpr std::size_t kStepDigits = 12;
constexpr Step kMostJournalSteps = 999'999'999'999;
constexpr std::string_view kTitle = "frazil.step_journal v2        ";
static_assert(kTitle.size() + kNumber + 1 == kHash && kSecond + kNumber + 1 == kHash);

constexpr std::array<std::pair<JournalKind, std::string_view>, 4> kWords{{
    {JournalKind::kWeights, "weights         "},
    {JournalKind::kKernels, "kernels         "},
    {JournalKind::kOtherKernels, "other-kernels   "},
    {JournalKind::kLost, "lost            "},
}};

// Appends the hash to `text`, which ends before the place of the hash.
std::string seal(const std::string& text, std::uint64_t seed) {
  return text + to_hex(hash_text(text, seed)) + "\n";
}

std::uint64_t hash_of_body(std::string_view line, std::uint64_t seed) {
  return hash_text(line.substr(0, kHash), seed);
}

std::optional<std::uint64_t> sealed_hash(std::string_view line, std::uint64_t seed) {
  const auto hash = parse_hex(line.substr(kHash, kNumber));
  const bool holds = hash && line.back() == '\n' && *hash == hash_of_body(line, seed);
  return holds ? hash : std::nullopt;
}

std::string first_number(const JournalLine& line) {
  for (const auto& [kind, word] : kWords) {
    if (line.kind == kind) return std::string(word);
  }
  return to_hex(line.loss_bits);
}

std::optional<JournalLine> parse_line(std::string_view text) {
  JournalLine line;
  const char* const end = text.data() + kStepDigits;
  const auto step = std::from_chars(text.data(), end, line.step);
  const auto value = parse_hex(text.substr(kSecond, kNumber));
  if (step.ptr != end || line.step < 0 || !value) return std::nullopt;
  line.value = *value;
  const std::string_view first = text.substr(kFirst, kNumber);
  for (const auto& [kind, word] : kWords) {
    if (first != word) continue;
    line.kind = kind;
    return line;
  }
  const auto loss = parse_hex(first);
  if (!loss) return std::nullopt;
  line.loss_bits = *loss;
  return line;
}

// Forgets what is said of the steps from this one on.
void drop_from(Step step, JournalContents& contents) {
  std::erase_if(contents.records,
                [step](const JournalRecord& record) { return record.step >= step; });
  contents.weights.erase(contents.weights.upper_bound(step), contents.weights.end());
  contents.steps = std::min(contents.steps, step);
}

void enter_kernels(const JournalLine& line, JournalContents& contents) {
  std::erase_if(contents.kernels,
                [&line](const JournalLine& later) { return later.step > line.step; });
  contents.kernels.push_back(line);
}

// Returns whether a line continues what stands before it, if nothing is missing in between.
bool continues(const JournalLine& line, const JournalContents& contents) {
  switch (line.kind) {
    case JournalKind::kStep:
      return line.step == contents.steps;
    case JournalKind::kWeights:
    case JournalKind::kKernels:
    case JournalKind::kOtherKernels:
      return line.step <= contents.steps;
    case JournalKind::kLost:
      return line.step == contents.steps && line.value > 0 &&
             line.value <= static_cast<std::uint64_t>(kMostJournalSteps - line.step);
  }
  return false;
}

// Makes the contents such that the line continues them, as it did before lines were damaged.
void make_room(const JournalLine& line, JournalContents& contents) {
  const bool goes_back = line.kind == JournalKind::kStep || line.kind == JournalKind::kLost;
  // Between them steps were begun anew.
  if (goes_back && line.step < contents.steps) drop_from(line.step, contents);
  contents.steps = std::max(contents.steps, line.step);
}

// Reads line after line. Behind one that does not hold it looks for the next that does.
class LineReader {
 public:
  LineReader(std::string_view text, std::uint64_t run_hash)
      : text_(text), header_(journal_header(run_hash)), header_hash_(hash_in_line(header_)) {}

  JournalReading read() {
    const bool is_begun = text_.substr(0, kLine) == header_;
    if (!is_begun && is_sealed_header()) {
      reading_.is_of_another_run = true;
      return reading_;
    }
    reading_.last_hash = header_hash_;
    is_linked_ = is_begun || states_header_hash();
    is_broken_ = reading_.is_damaged = !is_begun;
    if (is_begun) {
      reading_.whole_bytes = kLine;
      trusted_ = header_hash_;
    }
    for (std::size_t place = is_begun ? kLine : next_place(0); place + kLine <= text_.size();) {
      place = take(place) ? place + kLine : next_place(place);
    }
    if (!is_linked_) reading_.contents = {};
    if (text_.size() - reading_.whole_bytes > kLine) reading_.is_damaged = true;
    return reading_;
  }

 private:
  struct Pending {
    JournalLine line;
    std::uint64_t hash;  // as it should be
  };

  bool is_sealed_header() const {
    return text_.size() >= kLine && text_.starts_with(kTitle) &&
           sealed_hash(text_.substr(0, kLine), 0).has_value();
  }
  bool states_header_hash() const {
    return text_.size() >= kLine && parse_hex(text_.substr(kHash, kNumber)) == header_hash_;
  }

  // Lines have lost or won bytes, or an end of line: each place is tried at which one may begin.
  std::size_t next_place(std::size_t place) const {
    const std::size_t end = text_.find('\n', place);
    return std::min(place + kLine, end == std::string_view::npos ? text_.size() : end + 1);
  }

  // Returns the hash of a line that holds after the line before it, whichever part of that was
  // damaged.
  std::optional<std::uint64_t> hash_at(std::size_t place) {
    const std::string_view line = text_.substr(place, kLine);
    if (trusted_) {
      if (const auto hash = sealed_hash(line, *trusted_)) return hash;
    }
    if (pending_) {
      if (const auto hash = sealed_hash(line, pending_->hash)) {
        add(pending_->line);  // the damage is in the hash alone
        return hash;
      }
    }
    if (!is_linked_) {
      if (const auto hash = sealed_hash(line, header_hash_)) {
        is_linked_ = true;
        return hash;
      }
    }
    if (place < kNumber + 1) return std::nullopt;
    const auto stated = parse_hex(text_.substr(place - kNumber - 1, kNumber));
    return stated ? sealed_hash(line, *stated) : std::nullopt;
  }

  bool take(std::size_t place) {
    const std::string_view text = text_.substr(place, kLine);
    const auto hash = hash_at(place);
    const auto line = parse_line(text);
    if (hash && line && add(*line)) {
      trusted_ = hash;
      pending_.reset();
      if (!is_broken_) {
        reading_.whole_bytes = place + kLine;
        reading_.last_hash = *hash;
      }
      return true;
    }
    is_broken_ = true;
    pending_.reset();
    if (trusted_ && line) pending_ = Pending{*line, hash_of_body(text, *trusted_)};
    trusted_.reset();
    return false;
  }

  bool add(const JournalLine& line) {
    JournalContents& contents = reading_.contents;
    if (!continues(line, contents)) {
      if (!is_broken_) return false;
      make_room(line, contents);
      if (!continues(line, contents)) return false;
    }
    if (is_broken_) reading_.is_damaged = true;
    if (line.kind == JournalKind::kStep) {
      contents.records.push_back({line.step, line.loss_bits, line.value});
    }
    add_line(line, contents);
    return true;
  }

  std::string_view text_;
  std::string header_;
  std::uint64_t header_hash_;
  std::optional<std::uint64_t> trusted_;  // the hash of the line before, if that holds
  std::optional<Pending> pending_;        // the line before, if nothing but its hash may be wrong
  bool is_linked_ = false;                // lines belong to this run
  bool is_broken_ = false;
  JournalReading reading_;
};

// Lists what the contents say in an order in which it can be read again.
std::vector<JournalLine> list_lines(const JournalContents& contents) {
  std::vector<JournalLine> lines;
  // Of one step, weights come before kernels: they are of the steps before.
  for (const auto& [step, hash] : contents.weights) {
    lines.push_back({.kind = JournalKind::kWeights, .step = step, .value = hash});
  }
  lines.insert(lines.end(), contents.kernels.begin(), contents.kernels.end());
  for (const JournalRecord& record : contents.records) {
    lines.push_back({JournalKind::kStep, record.step, record.loss_bits, record.mask_hash});
  }
  std::stable_sort(lines.begin(), lines.end(), [](const JournalLine& a, const JournalLine& b) {
    return std::pair(a.step, a.kind == JournalKind::kStep) <
           std::pair(b.step, b.kind == JournalKind::kStep);
  });
  return lines;
}

}  // namespace

std::string journal_header(std::uint64_t run_hash) {
  return seal(std::string(kTitle) + to_hex(run_hash) + " ", 0);
}

std::string journal_line(const JournalLine& line, std::uint64_t seed) {
  const std::string step = std::to_string(line.step);
  ENSURE(line.step >= 0 && step.size() <= kStepDigits, "a step that a line can hold");
  return seal(std::string(kStepDigits - step.size(), '0') + step + " " + first_number(line) + " " +
                  to_hex(line.value) + " ",
              seed);
}

std::uint64_t hash_in_line(std::string_view line) {
  return parse_hex(line.substr(kHash, kNumber)).value();
}

JournalReading read_journal(std::string_view text, std::uint64_t run_hash) {
  return LineReader(text, run_hash).read();
}

std::string journal_text(const JournalContents& contents, std::uint64_t run_hash) {
  std::string text = journal_header(run_hash);
  std::uint64_t hash = hash_in_line(text);
  Step steps = 0;
  const auto add = [&](const JournalLine& line) {
    const std::string next = journal_line(line, hash);
    hash = hash_in_line(next);
    text += next;
  };
  const auto lose_until = [&](Step step) {
    if (step <= steps) return;
    add({.kind = JournalKind::kLost,
         .step = steps,
         .value = static_cast<std::uint64_t>(step - steps)});
    steps = step;
  };
  for (const JournalLine& line : list_lines(contents)) {
    lose_until(line.step);
    add(line);
    if (line.kind == JournalKind::kStep) ++steps;
  }
  lose_until(contents.steps);
  return text;
}

void add_line(const JournalLine& line, JournalContents& contents) {
  switch (line.kind) {
    case JournalKind::kStep:
      contents.steps = line.step + 1;
      return;
    case JournalKind::kWeights:
      contents.weights.emplace(line.step, line.value);
      return;
    case JournalKind::kKernels:
      enter_kernels(line, contents);
      return;
    case JournalKind::kOtherKernels:
      drop_from(line.step, contents);
      enter_kernels(line, contents);
      return;
    case JournalKind::kLost:
      contents.steps += static_cast<Step>(line.value);
      return;
  }
}

}  // namespace frazil
