#include "exec/checkpoint/step_journal.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "exec/disk/hashes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLine = 64;
constexpr std::size_t kHash = 47;  // where the hash of a line begins, after a space
constexpr std::string_view kTitle = "frazil.step_journal v1        ";
constexpr std::size_t kStepDigits = 12;
static_assert(kTitle.size() + 16 + 1 == kHash && kStepDigits + 1 + 16 + 1 + 16 + 1 == kHash);

// Appends the hash to `text`, which ends before the place of the hash.
std::string seal(const std::string& text, std::uint64_t seed) {
  return text + to_hex(hash_text(text, seed)) + "\n";
}

std::optional<std::uint64_t> sealed_hash(std::string_view line, std::uint64_t seed) {
  const auto hash = parse_hex(line.substr(kHash, 16));
  const bool holds = hash && line.back() == '\n' && *hash == hash_text(line.substr(0, kHash), seed);
  return holds ? hash : std::nullopt;
}

std::string header_line(std::uint64_t run_hash) {
  return seal(std::string(kTitle) + to_hex(run_hash) + " ", 0);
}

std::string record_line(const JournalRecord& record, std::uint64_t seed) {
  const std::string step = std::to_string(record.step);
  ENSURE(step.size() <= kStepDigits, "a step that a record can hold");
  return seal(std::string(kStepDigits - step.size(), '0') + step + " " + to_hex(record.loss_bits) +
                  " " + to_hex(record.mask_hash) + " ",
              seed);
}

// Requires: the hash of the line holds.
std::optional<JournalRecord> parse_record(std::string_view line) {
  JournalRecord record;
  const char* const end = line.data() + kStepDigits;
  const auto step = std::from_chars(line.data(), end, record.step);
  const auto loss = parse_hex(line.substr(kStepDigits + 1, 16));
  const auto mask = parse_hex(line.substr(kStepDigits + 18, 16));
  if (step.ptr != end || !loss || !mask) return std::nullopt;
  record.loss_bits = *loss;
  record.mask_hash = *mask;
  return record;
}

bool exists(const FileSystem& files, const fs::path& path) {
  const std::vector<std::string> names = list_folder(files, path.parent_path());
  return std::find(names.begin(), names.end(), path.filename().string()) != names.end();
}

const fs::path& make_if_absent(const FileSystem& files, const fs::path& path,
                               std::uint64_t run_hash) {
  if (exists(files, path)) return path;
  const fs::path temporary = path.parent_path() / (".tmp-" + path.filename().string());
  remove_file(files, temporary);
  File file(files, temporary, O_WRONLY | O_CREAT | O_EXCL);
  file.write(header_line(run_hash));
  file.sync();
  file.close();
  rename_file(files, temporary, path);
  sync_folder(files, path.parent_path());
  return path;
}

}  // namespace

StepJournal::StepJournal(const FileSystem& files, const fs::path& path, std::uint64_t run_hash,
                         const JournalOptions& options)
    : options_(options),
      path_(path),
      file_(files, make_if_absent(files, path, run_hash), O_RDWR | O_APPEND) {
  recover(run_hash);
}

void StepJournal::recover(std::uint64_t run_hash) {
  std::string text(static_cast<std::size_t>(file_.size()), '\0');
  text.resize(file_.read(text.data(), text.size()));
  const std::string header = header_line(run_hash);
  if (text.substr(0, kLine) != header) {
    const bool is_journal = text.size() >= kLine && text.starts_with(kTitle) &&
                            sealed_hash(std::string_view(text).substr(0, kLine), 0);
    throw InputError(path_.string(), 1, is_journal ? "the journal of another run" : "no journal",
                     "the journal of this run");
  }
  last_hash_ = *sealed_hash(header, 0);
  std::size_t place = kLine;
  for (; place + kLine <= text.size(); place += kLine) {
    const std::string_view line = std::string_view(text).substr(place, kLine);
    const auto hash = sealed_hash(line, last_hash_);
    const auto record = hash ? parse_record(line) : std::nullopt;
    if (!record || record->step != static_cast<Step>(recovered_.size())) break;
    recovered_.push_back(*record);
    last_hash_ = *hash;
  }
  cut_bytes_ = static_cast<std::int64_t>(text.size() - place);
  if (cut_bytes_ > 0) file_.truncate(static_cast<std::int64_t>(place));
  steps_ = static_cast<Step>(recovered_.size());
  group_ = steps_;
  // Records of a process that was killed may be there without ever having been synced.
  sync();
}

void StepJournal::append(const JournalRecord& record) {
  ENSURE(!failed_ && !(options_.syncs && sync_failed_),
         "a journal that could not be written is opened anew");
  ENSURE(record.step == steps_, "steps are recorded in order");
  const std::string line = record_line(record, last_hash_);
  try {
    file_.write(line);
  } catch (...) {
    failed_ = true;
    throw;
  }
  last_hash_ = *sealed_hash(line, last_hash_);
  ++steps_;
  if (options_.syncs && take_due()) sync();
}

bool StepJournal::take_due() {
  const bool is_full = steps_ - group_ >= options_.records;
  if (!is_full && Clock::now() - group_time_ < options_.time) return false;
  group_ = steps_;
  group_time_ = Clock::now();
  return true;
}

void StepJournal::sync() {
  ENSURE(!failed_ && !sync_failed_, "a journal that could not be written is opened anew");
  const Step steps = steps_;
  try {
    file_.sync();
  } catch (...) {
    sync_failed_ = true;
    throw;
  }
  acknowledged_ = steps;
}

}  // namespace frazil
