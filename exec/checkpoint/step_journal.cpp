#include "exec/checkpoint/step_journal.h"

#include <fcntl.h>

#include <algorithm>

#include "exec/checkpoint/read_journal.h"
#include "exec/disk/kept_aside.h"
#include "profiles/error.h"

namespace frazil {
namespace {

namespace fs = std::filesystem;

void refuse_unknown(const JournalReading& reading, const fs::path& path) {
  if (reading.version > kJournalVersion) {
    throw InputError(path.string(), 1, "a journal of version " + std::to_string(reading.version),
                     "one of version 1 to " + std::to_string(kJournalVersion) +
                         "; the frazil that began this run can go on with it");
  }
  if (reading.is_of_another_run) {
    throw InputError(path.string(), 1, "the journal of another run", "the journal of this run");
  }
}

}  // namespace

StepJournal::StepJournal(const FileSystem& files, const fs::path& path, std::uint64_t run_hash,
                         const JournalOptions& options)
    : options_(options), path_(path) {
  if (!is_in_folder(files, path_)) write_file(files, path_, journal_header(run_hash));
  const std::size_t whole = recover(files, run_hash);
  file_.emplace(files, path_, O_RDWR | O_APPEND);
  if (cut_bytes_ > 0) file_->truncate(static_cast<std::int64_t>(whole));
  steps_ = group_ = contents_.steps;
  // Records of a process that was killed may be there without ever having been synced.
  sync();
}

// Returns how many bytes of the file hold.
std::size_t StepJournal::recover(const FileSystem& files, std::uint64_t run_hash) {
  std::string text = read_file(files, path_);
  JournalReading reading = read_journal(text, run_hash);
  refuse_unknown(reading, path_);
  found_version_ = reading.version;
  if (reading.is_damaged) {
    kept_aside_ = keep_copy_aside(files, path_, text);
  } else {
    cut_bytes_ = static_cast<std::int64_t>(text.size() - reading.whole_bytes);
  }
  if (reading.is_damaged || found_version_ != kJournalVersion) {
    text = journal_text(reading.contents, run_hash);
    write_file(files, path_, text);
    reading = read_journal(text, run_hash);
  }
  contents_ = std::move(reading.contents);
  last_hash_ = reading.last_hash;
  return reading.whole_bytes;
}

const JournalRecord* StepJournal::find(Step step) const {
  const auto place =
      std::lower_bound(contents_.records.begin(), contents_.records.end(), step,
                       [](const JournalRecord& record, Step which) { return record.step < which; });
  return place != contents_.records.end() && place->step == step ? &*place : nullptr;
}

void StepJournal::write(const JournalLine& line) {
  ENSURE(!failed_ && !(options_.syncs && sync_failed_),
         "a journal that could not be written is opened anew");
  const std::string text = journal_line(line, last_hash_);
  try {
    file_->write(text);
  } catch (...) {
    failed_ = true;
    throw;
  }
  last_hash_ = hash_in_line(text);
  add_line(line, contents_);
  steps_ = contents_.steps;
}

void StepJournal::append(const JournalRecord& record) {
  ENSURE(record.step == steps_, "steps are recorded in order");
  write({JournalKind::kStep, record.step, record.loss_bits, record.mask_hash});
  if (options_.syncs && take_due()) sync();
}

void StepJournal::append_weights(Step done, std::uint64_t hash) {
  ENSURE(done <= steps_ && !contents_.weights.contains(done), "weights are recorded once");
  write({.kind = JournalKind::kWeights, .step = done, .value = hash});
}

void StepJournal::append_kernels(Step step, std::uint64_t hash, bool breaks) {
  ENSURE(step <= steps_, "kernels change between two steps");
  write({.kind = breaks ? JournalKind::kOtherKernels : JournalKind::kKernels,
         .step = step,
         .value = hash});
  group_ = steps_;
}

void StepJournal::append_lost(Step end) {
  if (end <= steps_) return;
  const Step step = steps_;
  write(
      {.kind = JournalKind::kLost, .step = step, .value = static_cast<std::uint64_t>(end - step)});
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
    file_->sync();
  } catch (...) {
    sync_failed_ = true;
    throw;
  }
  acknowledged_ = steps;
}

}  // namespace frazil
