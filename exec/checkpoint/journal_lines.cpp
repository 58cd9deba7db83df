#include "exec/checkpoint/journal_lines.h"

#include <array>
#include <charconv>
#include <utility>

#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr std::size_t kHash = 47;    // where the hash of a line begins, after a space
constexpr std::size_t kFirst = 13;   // where the two numbers of a line begin
constexpr std::size_t kSecond = 30;  // after the step
constexpr std::size_t kNumber = 16;
constexpr std::size_t kStepDigits = 12;
constexpr std::string_view kTitle = "frazil.step_journal v";  // then version and spaces
static_assert(kSecond + kNumber + 1 == kHash && kHash + kNumber + 1 == kJournalLineBytes);

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

std::string first_number(const JournalLine& line) {
  for (const auto& [kind, word] : kWords) {
    if (line.kind == kind) return std::string(word);
  }
  return to_hex(line.loss_bits);
}

}  // namespace

std::string journal_header(std::uint64_t run_hash, int version) {
  std::string title = std::string(kTitle) + std::to_string(version);
  ENSURE(version >= 1 && title.size() < kSecond, "a version that a line can hold");
  title.resize(kSecond, ' ');
  return seal(title + to_hex(run_hash) + " ", 0);
}

std::string journal_line(const JournalLine& line, std::uint64_t seed) {
  const std::string step = std::to_string(line.step);
  ENSURE(line.step >= 0 && step.size() <= kStepDigits, "a step that a line can hold");
  return seal(std::string(kStepDigits - step.size(), '0') + step + " " + first_number(line) + " " +
                  to_hex(line.value) + " ",
              seed);
}

std::uint64_t hash_in_line(std::string_view line) { return stated_hash(line).value(); }

std::optional<JournalHeader> parse_header(std::string_view line) {
  if (!line.starts_with(kTitle) || !sealed_hash(line, 0)) return std::nullopt;
  JournalHeader header;
  const char* const end = line.data() + kSecond;
  const auto version = std::from_chars(line.data() + kTitle.size(), end, header.version);
  const auto run_hash = parse_hex(line.substr(kSecond, kNumber));
  if (version.ec != std::errc() || header.version < 1 || !run_hash) return std::nullopt;
  header.run_hash = *run_hash;
  return header;
}

std::optional<JournalLine> parse_journal_line(std::string_view text) {
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

std::optional<std::uint64_t> stated_hash(std::string_view line) {
  return parse_hex(line.substr(kHash, kNumber));
}

std::uint64_t computed_hash(std::string_view line, std::uint64_t seed) {
  return hash_text(line.substr(0, kHash), seed);
}

std::optional<std::uint64_t> sealed_hash(std::string_view line, std::uint64_t seed) {
  const auto hash = stated_hash(line);
  const bool holds = hash && line.back() == '\n' && *hash == computed_hash(line, seed);
  return holds ? hash : std::nullopt;
}

}  // namespace frazil
