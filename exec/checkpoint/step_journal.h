#pragma once
// The step journal records the loss and the mask of every step of a run, and the hash of the
// weights at every checkpoint (exec/checkpoint/journal_lines.h). The file is append-only.
//
// Lines are synced in groups. A step is *acknowledged* once its line is durable. One thread
// appends; another may sync meanwhile.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exec/checkpoint/journal_contents.h"
#include "exec/disk/file_system.h"
#include "profiles/units.h"

namespace frazil {

struct JournalOptions {
  // A group of records ends with its `records`-th record, or with the first record at least `time`
  // after the group before ended.
  int records = 32;
  Duration time = std::chrono::milliseconds(100);
  bool syncs = true;  // append syncs at the end of a group; if not, its caller asks take_due
};

class StepJournal {
 public:
  // Opens the journal of a run, or makes it: whole, or not at all. A last line that does not hold
  // (torn, as by a crash) is cut. A journal that is damaged elsewhere is kept as
  // "<name>.damaged-<hash of its bytes>", and a new one is made of the lines that hold. One of
  // version 1 is replaced by one of version 2 that says the same. Throws InputError, and leaves the
  // file as it was, if it is the journal of another run or of a version that is not known here.
  StepJournal(const FileSystem& files, const std::filesystem::path& path, std::uint64_t run_hash,
              const JournalOptions& options = {});

  // Returns the records that were there when the journal was opened and that still count, by step.
  // Those of lost steps are missing.
  const std::vector<JournalRecord>& recovered() const { return contents_.records; }
  const JournalRecord* find(Step step) const;  // among them; null: none
  const std::map<Step, std::uint64_t>& weights() const { return contents_.weights; }
  const std::vector<JournalLine>& kernels() const { return contents_.kernels; }
  std::int64_t cut_bytes() const { return cut_bytes_; }
  int found_version() const { return found_version_; }  // of the file, before it was replaced
  // Returns the name of the file that keeps the damaged journal; empty: it was none.
  const std::string& kept_aside() const { return kept_aside_; }
  Step steps() const { return steps_; }                // recorded or lost
  Step acknowledged() const { return acknowledged_; }  // recorded and durable

  // Appends the record of step steps(). After an InputError from here nothing can be appended any
  // more, and so with the functions below.
  void append(const JournalRecord& record);
  void append_weights(Step done, std::uint64_t hash);
  // `breaks`: steps from this one on give other bits, so their records do not count any more.
  void append_kernels(Step step, std::uint64_t hash, bool breaks);
  void append_lost(Step end);  // steps from steps() up to this one were done, but have no records
  // Returns true if a group is at its end; the next one then begins.
  bool take_due();
  // Makes all records durable of which append has returned. Once it has failed nothing is
  // acknowledged any more.
  void sync();

 private:
  using Clock = std::chrono::steady_clock;

  std::size_t recover(const FileSystem& files, std::uint64_t run_hash);
  void write(const JournalLine& line);

  JournalOptions options_;
  std::filesystem::path path_;
  JournalContents contents_;
  std::int64_t cut_bytes_ = 0;
  int found_version_ = kJournalVersion;
  std::string kept_aside_;
  std::uint64_t last_hash_ = 0;
  std::optional<File> file_;
  std::atomic<Step> steps_{0};
  std::atomic<Step> acknowledged_{0};
  std::atomic<bool> failed_{false};       // a write has failed
  std::atomic<bool> sync_failed_{false};  // what is in the file may be lost
  Step group_ = 0;                        // the first step of the group
  Clock::time_point group_time_ = Clock::now();
};

}  // namespace frazil
