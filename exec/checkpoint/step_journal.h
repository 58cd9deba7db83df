#pragma once
// clang-format off
// The step journal records the loss and the mask of every step of a run. The file is append-only, a
// line of 64 bytes per step,
//   "<step, 12 digits> <bits of the loss> <hash of the mask> <hash of the record>\n"
// after a line "frazil.step_journal v1         <hash of the run> <hash of the line>\n"; bits and
// hashes are 16 hex digits. The hash of a record is XXH64 of what stands before it in its line,
// seeded by the hash of the line before: a record holds only after the records it was written
// after.
//
// Records are synced in groups. A step is *acknowledged* once its record is durable. One thread
// appends; another may sync meanwhile.
// clang-format on

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "exec/disk/file_system.h"
#include "profiles/units.h"

namespace frazil {

struct JournalRecord {
  Step step = 0;
  std::uint64_t loss_bits = 0;
  std::uint64_t mask_hash = 0;
  friend bool operator==(const JournalRecord&, const JournalRecord&) = default;
};

struct JournalOptions {
  // A group of records ends with its `records`-th record, or with the first record at least `time`
  // after the group before ended.
  int records = 32;
  Duration time = std::chrono::milliseconds(100);
  bool syncs = true;  // append syncs at the end of a group; if not, its caller asks take_due
};

class StepJournal {
 public:
  // Opens the journal of a run, or makes it: whole, or not at all. Cuts the file at the first
  // record that does not hold (a torn tail). Throws InputError if the file is no journal, or that
  // of another run; the file is then as it was.
  StepJournal(const FileSystem& files, const std::filesystem::path& path, std::uint64_t run_hash,
              const JournalOptions& options = {});

  // Returns the records that were there when the journal was opened, by step from 0 on.
  const std::vector<JournalRecord>& recovered() const { return recovered_; }
  std::int64_t cut_bytes() const { return cut_bytes_; }
  Step steps() const { return steps_; }                // recorded
  Step acknowledged() const { return acknowledged_; }  // recorded and durable

  // Appends the record of step steps(). After an InputError from here nothing can be appended any
  // more.
  void append(const JournalRecord& record);
  // Returns true if a group is at its end; the next one then begins.
  bool take_due();
  // Makes all records durable of which append has returned. Once it has failed nothing is
  // acknowledged any more.
  void sync();

 private:
  using Clock = std::chrono::steady_clock;

  void recover(std::uint64_t run_hash);

  JournalOptions options_;
  std::filesystem::path path_;
  File file_;
  std::vector<JournalRecord> recovered_;
  std::int64_t cut_bytes_ = 0;
  std::atomic<Step> steps_{0};
  std::atomic<Step> acknowledged_{0};
  std::atomic<bool> failed_{false};       // a write has failed
  std::atomic<bool> sync_failed_{false};  // what is in the file may be lost
  std::uint64_t last_hash_ = 0;
  Step group_ = 0;  // the first step of the group
  Clock::time_point group_time_ = Clock::now();
};

}  // namespace frazil
