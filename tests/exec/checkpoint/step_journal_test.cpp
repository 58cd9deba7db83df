#include "exec/checkpoint/step_journal.h"

#include <gtest/gtest.h>

#include <random>

#include "profiles/error.h"
#include "tests/exec/disk/disk_model.h"
#include "tests/exec/disk/faulty_files.h"

namespace frazil {
namespace {

constexpr const char* kJournalPath = "/run/steps.journal";
constexpr std::uint64_t kJournalRun = 0x1234;
constexpr std::size_t kLine = 64;
const JournalOptions kByThree{.records = 3, .time = std::chrono::hours(1)};

JournalRecord record(Step step) {
  return {step, 0x3fe0000000000000U + static_cast<std::uint64_t>(step) * 77, 5};
}

void append(StepJournal& journal, Step end) {
  while (journal.steps() < end) journal.append(record(journal.steps()));
}

// Writes a journal of so many steps, all acknowledged.
void write_journal(const FileSystem& files, Step steps) {
  StepJournal journal(files, kJournalPath, kJournalRun);
  append(journal, steps);
  journal.sync();
}

void expect_records(const std::vector<JournalRecord>& records, std::size_t count) {
  ASSERT_EQ(records.size(), count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(records[i], record(static_cast<Step>(i)));
}

TEST(StepJournal, GivesBackWhatWasAppended) {
  DiskModel disk;
  const FileSystem files = disk.files();
  write_journal(files, 7);
  {
    StepJournal again(files, kJournalPath, kJournalRun);
    expect_records(again.recovered(), 7);
    EXPECT_EQ(again.cut_bytes(), 0);
    append(again, 9);
  }
  expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 9);
}

TEST(StepJournal, IsTextOfALinePerStep) {
  DiskModel disk;
  const FileSystem files = disk.files();
  write_journal(files, 2);
  const std::string text = disk.bytes(kJournalPath);
  ASSERT_EQ(text.size(), 3 * kLine);
  EXPECT_EQ(text.substr(0, 47), "frazil.step_journal v1        0000000000001234 ");
  EXPECT_EQ(text.substr(2 * kLine, 47), "000000000001 3fe000000000004d 0000000000000005 ");
  EXPECT_EQ(text.back(), '\n');
}

TEST(StepJournal, AcknowledgesInGroupsOfRecordsOrTime) {
  DiskModel disk;
  const FileSystem files = disk.files();
  StepJournal journal(files, kJournalPath, kJournalRun, kByThree);
  std::vector<Step> acknowledged;
  for (Step step = 0; step < 7; ++step) {
    journal.append(record(step));
    acknowledged.push_back(journal.acknowledged());
  }
  EXPECT_EQ(acknowledged, (std::vector<Step>{0, 0, 3, 3, 3, 6, 6}));
  journal.sync();
  EXPECT_EQ(journal.acknowledged(), 7);
  StepJournal patient(files, "/run/other", kJournalRun, {.records = 1000, .time = Duration{0}});
  patient.append(record(0));
  EXPECT_EQ(patient.acknowledged(), 1);
}

TEST(StepJournal, CutAtEveryByteOfItsLastRecordKeepsTheOthers) {
  for (std::size_t lost = 1; lost < kLine; ++lost) {
    SCOPED_TRACE(lost);
    DiskModel disk;
    const FileSystem files = disk.files();
    write_journal(files, 5);
    disk.bytes(kJournalPath).resize(6 * kLine - lost);
    StepJournal journal(files, kJournalPath, kJournalRun);
    expect_records(journal.recovered(), 4);
    EXPECT_EQ(journal.cut_bytes(), static_cast<std::int64_t>(kLine - lost));
    append(journal, 6);
    expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 6);
  }
}

TEST(StepJournal, EveryFlippedBitIsFound) {
  DiskModel disk;
  const FileSystem files = disk.files();
  write_journal(files, 3);
  const std::string whole = disk.bytes(kJournalPath);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    disk.bytes(kJournalPath) = whole;
    disk.bytes(kJournalPath)[bit / 8] = static_cast<char>(whole[bit / 8] ^ (1 << bit % 8));
    if (bit / 8 < kLine) {
      const std::string broken = disk.bytes(kJournalPath);
      EXPECT_THROW(StepJournal(files, kJournalPath, kJournalRun), InputError) << bit;
      EXPECT_EQ(disk.bytes(kJournalPath), broken);
    } else {
      expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(),
                     bit / 8 / kLine - 1);
    }
  }
}

// Each line holds by itself, but not in another place.
TEST(StepJournal, SwappedAndDoubledRecordsAreFound) {
  DiskModel disk;
  const FileSystem files = disk.files();
  write_journal(files, 4);
  const std::string whole = disk.bytes(kJournalPath);
  const auto line = [&](std::size_t i) { return whole.substr(i * kLine, kLine); };
  disk.bytes(kJournalPath) = line(0) + line(1) + line(3) + line(2) + line(4);
  expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 1);
  disk.bytes(kJournalPath) = line(0) + line(1) + line(2) + line(2) + line(3);
  expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 2);
}

TEST(StepJournal, RefusesTheJournalOfAnotherRunAndWhatIsNone) {
  DiskModel disk;
  const FileSystem files = disk.files();
  write_journal(files, 1);
  const auto refusal = [&](std::uint64_t run) {
    try {
      StepJournal journal(files, kJournalPath, run);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(kJournalRun + 1),
            "/run/steps.journal:1: found the journal of another run, expected the journal of this "
            "run");
  disk.bytes(kJournalPath) = "a shopping list\n";
  EXPECT_NE(refusal(kJournalRun).find("found no journal"), std::string::npos);
}

// A process begins a journal and appends five steps, and is ended at every call of the file system.
TEST(StepJournal, EndedAtEveryCallLosesNoAcknowledgedStep) {
  for (const Fault fault : {Fault::kCrash, Fault::kNoSpace, Fault::kInputOutput}) {
    bool struck = true;
    for (int call = 0; struck; ++call) {
      SCOPED_TRACE(std::to_string(static_cast<int>(fault)) + " at call " + std::to_string(call));
      DiskModel disk;
      FaultyFiles faulty(disk.files());
      const FileSystem files = faulty.files();
      faulty.arm(fault, call);
      Step acknowledged = 0;
      try {
        StepJournal journal(files, kJournalPath, kJournalRun, kByThree);
        for (Step step = 0; step < 5; ++step) {
          journal.append(record(step));
          acknowledged = journal.acknowledged();
        }
      } catch (const Crash&) {
      } catch (const InputError&) {
      }
      struck = faulty.has_struck();
      faulty.disarm();
      disk.kill();
      StepJournal journal(files, kJournalPath, kJournalRun);
      expect_records(journal.recovered(), journal.recovered().size());
      EXPECT_GE(journal.steps(), acknowledged);
      append(journal, 5);
      ASSERT_LT(call, 200);
    }
  }
}

TEST(StepJournal, LosesNoAcknowledgedStepWithThePower) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", trial " + std::to_string(trial));
    DiskModel disk;
    FaultyFiles faulty(disk.files());
    const FileSystem files = faulty.files();
    Step acknowledged = 0;
    for (int life = 0; life < 3; ++life) {
      faulty.arm(Fault::kCrash, static_cast<int>(random() % 40));
      try {
        StepJournal journal(files, kJournalPath, kJournalRun, kByThree);
        while (true) {
          journal.append(record(journal.steps()));
          acknowledged = journal.acknowledged();
        }
      } catch (const Crash&) {
      }
      faulty.disarm();
      disk.lose_power(random);
      StepJournal journal(files, kJournalPath, kJournalRun);
      ASSERT_GE(journal.steps(), acknowledged);
      expect_records(journal.recovered(), static_cast<std::size_t>(journal.steps()));
    }
  }
}

TEST(StepJournal, TakesNoRecordAfterOneThatFailed) {
  DiskModel disk;
  FaultyFiles faulty(disk.files());
  const FileSystem files = faulty.files();
  StepJournal journal(files, kJournalPath, kJournalRun);
  append(journal, 2);
  faulty.arm(Fault::kNoSpace, 0);
  EXPECT_THROW(journal.append(record(2)), InputError);
  EXPECT_THROW(journal.append(record(2)), std::logic_error);
  EXPECT_THROW(journal.sync(), std::logic_error);
}

TEST(StepJournal, GoesOnAfterShortAndInterruptedWrites) {
  DiskModel disk;
  FaultyFiles faulty(disk.files());
  const FileSystem files = faulty.files();
  faulty.hinder(7);
  write_journal(files, 5);
  expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 5);
}

}  // namespace
}  // namespace frazil
