#pragma once
// What every step of a run gave, append-only: a line of 64 bytes per step,
//   "<step, 12 digits> <bits of the loss> <hash of the mask> <hash of the record>\n"
// after a line "frazil.step_journal v1         <hash of the run> <hash of the line>\n"; bits and
// hashes are 16 hex digits. The hash of a record is XXH64 of what stands before it, seeded by the
// hash of the line before: a record holds only after the records it was written after.
//
// Records are synced in groups. A step is *acknowledged* once its record is durable. One thread
// appends; another may sync meanwhile.

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
  // A group: until the record that is the so manieth of it, or comes so long after the last group.
  int records = 32;
  Duration time = std::chrono::milliseconds(100);
  bool syncs = true;  // at the end of each; else whoever appends does so, asking take_due
};

class StepJournal {
 public:
  // Opens the journal of a run, or makes it: whole, or not at all. From the first record on that
  // does not hold (a torn tail), it is cut. Throws InputError where the file is no journal, or that
  // of another run; then it is as it was.
  StepJournal(const FileSystem& files, const std::filesystem::path& path, std::uint64_t run_hash,
              const JournalOptions& options = {});

  // What was there when it was opened, by step from 0 on.
  const std::vector<JournalRecord>& recovered() const { return recovered_; }
  std::int64_t cut_bytes() const { return cut_bytes_; }
  Step steps() const { return steps_; }                // recorded
  Step acknowledged() const { return acknowledged_; }  // of these, durable

  // Of step steps(). After an InputError of it nothing can be appended any more.
  void append(const JournalRecord& record);
  // Whether a group is at its end; the next one begins then.
  bool take_due();
  // All records of which append has returned. Once it has failed nothing is acknowledged any more.
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
  std::atomic<bool> failed_{false};       // to write
  std::atomic<bool> sync_failed_{false};  // what is in the file may be lost
  std::uint64_t last_hash_ = 0;
  Step group_ = 0;  // the first step of the group
  Clock::time_point group_time_ = Clock::now();
};

}  // namespace frazil
