#include "exec/checkpoint/step_journal.h"

#include <gtest/gtest.h>

#include <random>

#include "exec/checkpoint/read_journal.h"
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
  EXPECT_EQ(text.substr(0, 47), "frazil.step_journal v2        0000000000001234 ");
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

// Returns the bytes of the file that keeps a damaged journal, or "".
std::string kept_aside(const DiskModel& disk) {
  for (const auto& [path, bytes] : disk.contents()) {
    if (path.starts_with(std::string(kJournalPath) + ".damaged-")) return bytes;
  }
  return "";
}

void expect_some_records(const std::vector<JournalRecord>& records) {
  for (const JournalRecord& some : records) EXPECT_EQ(some, record(some.step));
}

// The record that a bit is of is lost where the bit is of its numbers. The hash of a record can be
// found again from the record behind it; behind the last record there is none.
TEST(StepJournal, OneFlippedBitCostsOneRecordAtMostAndTheFileIsKept) {
  std::string whole;
  {
    DiskModel disk;
    write_journal(disk.files(), 4);
    whole = disk.bytes(kJournalPath);
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string broken = whole;
    broken[bit / 8] = static_cast<char>(whole[bit / 8] ^ (1 << bit % 8));
    DiskModel disk;
    const FileSystem files = disk.files();
    write_file(files, kJournalPath, broken);
    const std::size_t line = bit / 8 / kLine;
    const bool is_last = line == 4;
    const bool is_of_numbers = line > 0 && bit / 8 % kLine < 47;
    StepJournal journal(files, kJournalPath, kJournalRun);
    expect_some_records(journal.recovered());
    EXPECT_EQ(journal.recovered().size(), is_last || is_of_numbers ? 3U : 4U);
    EXPECT_EQ(journal.steps(), is_last ? 3 : 4);
    EXPECT_EQ(kept_aside(disk), is_last ? "" : broken);
    EXPECT_EQ(journal.kept_aside().empty(), is_last);
    append(journal, 6);
    const StepJournal again(files, kJournalPath, kJournalRun);
    EXPECT_EQ(again.steps(), 6);
    EXPECT_EQ(again.recovered().size(), is_of_numbers && !is_last ? 5U : 6U);
    EXPECT_EQ(again.kept_aside(), "");
    EXPECT_EQ(again.cut_bytes(), 0);
  }
}

// Returns a journal of either version that records so many steps.
std::string journal_of_version(int version, Step steps) {
  std::string text = journal_header(kJournalRun, version);
  std::uint64_t seed = hash_in_line(text);
  for (Step step = 0; step < steps; ++step) {
    const auto [number, loss, mask] = record(step);
    const std::string line = journal_line({JournalKind::kStep, number, loss, mask}, seed);
    seed = hash_in_line(line);
    text += line;
  }
  return text;
}

// A disk may give zeros for what it has lost, with nothing left that tells the version.
TEST(StepJournal, AnUnreadableFirstLineCostsNoRecordInEitherVersion) {
  for (const int version : {1, 2}) {
    for (const char filling : {'\0', '0', '\n'}) {
      SCOPED_TRACE("version " + std::to_string(version) + ", filling " + std::to_string(filling));
      const std::string text =
          std::string(kLine, filling) + journal_of_version(version, 4).substr(kLine);
      DiskModel disk;
      const FileSystem files = disk.files();
      write_file(files, kJournalPath, text);
      StepJournal journal(files, kJournalPath, kJournalRun);
      expect_records(journal.recovered(), 4);
      EXPECT_EQ(journal.found_version(), version);
      EXPECT_EQ(kept_aside(disk), text);
      append(journal, 6);
      expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 6);
      disk.bytes(kJournalPath) = text;
      EXPECT_EQ(StepJournal(files, kJournalPath, kJournalRun + 1).steps(), 0) << "of another run";
    }
  }
}

TEST(StepJournal, LostAndWonBytesCostTheLinesThatTheyAreIn) {
  std::string whole;
  {
    DiskModel disk;
    write_journal(disk.files(), 6);
    whole = disk.bytes(kJournalPath);
  }
  for (std::size_t place = 0; place + kLine < whole.size(); ++place) {
    for (const std::string& bytes : {whole.substr(0, place) + whole.substr(place + 1),
                                     whole.substr(0, place) + "x" + whole.substr(place)}) {
      SCOPED_TRACE(place);
      DiskModel disk;
      const FileSystem files = disk.files();
      write_file(files, kJournalPath, bytes);
      const StepJournal journal(files, kJournalPath, kJournalRun);
      expect_some_records(journal.recovered());
      EXPECT_GE(journal.recovered().size(), 4U);
      EXPECT_EQ(kept_aside(disk), bytes);
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
  const std::string swapped = line(0) + line(1) + line(3) + line(2) + line(4);
  disk.bytes(kJournalPath) = swapped;
  expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 1);
  EXPECT_EQ(kept_aside(disk), swapped);
  (void)files.unlink(disk.contents().rbegin()->first);
  const std::string doubled = line(0) + line(1) + line(2) + line(2) + line(3);
  disk.bytes(kJournalPath) = doubled;
  expect_records(StepJournal(files, kJournalPath, kJournalRun).recovered(), 3);
  EXPECT_EQ(kept_aside(disk), doubled);
}

TEST(StepJournal, HasHashesOfWeightsAndKernelsBetweenItsRecords) {
  DiskModel disk;
  const FileSystem files = disk.files();
  {
    StepJournal journal(files, kJournalPath, kJournalRun);
    journal.append_kernels(0, 0xabc, false);
    append(journal, 4);
    journal.append_weights(4, 0xdef);
    append(journal, 6);
  }
  EXPECT_EQ(disk.bytes(kJournalPath).substr(kLine, 47),
            "000000000000 kernels          0000000000000abc ");
  EXPECT_EQ(disk.bytes(kJournalPath).substr(6 * kLine, 47),
            "000000000004 weights          0000000000000def ");
  const StepJournal again(files, kJournalPath, kJournalRun);
  expect_records(again.recovered(), 6);
  EXPECT_EQ(again.weights(), (std::map<Step, std::uint64_t>{{4, 0xdef}}));
  ASSERT_EQ(again.kernels().size(), 1U);
  EXPECT_EQ(again.kernels()[0].value, 0xabcU);
}

TEST(StepJournal, OtherKernelsTakeBackTheStepsFromThereOn) {
  DiskModel disk;
  const FileSystem files = disk.files();
  {
    StepJournal journal(files, kJournalPath, kJournalRun);
    append(journal, 4);
    journal.append_weights(4, 1);
    append(journal, 7);
    journal.append_weights(7, 2);
    journal.append_kernels(4, 3, true);
    EXPECT_EQ(journal.steps(), 4);
    journal.append({4, 99, 5});
  }
  const StepJournal again(files, kJournalPath, kJournalRun);
  ASSERT_EQ(again.recovered().size(), 5U);
  EXPECT_EQ(again.recovered()[3], record(3));
  EXPECT_EQ(again.recovered()[4], (JournalRecord{4, 99, 5}));
  EXPECT_EQ(again.weights(), (std::map<Step, std::uint64_t>{{4, 1}}));
}

TEST(StepJournal, KnowsThatStepsWereDoneWhoseRecordsAreLost) {
  DiskModel disk;
  const FileSystem files = disk.files();
  {
    StepJournal journal(files, kJournalPath, kJournalRun);
    append(journal, 2);
    journal.append_lost(5);
    append(journal, 6);
  }
  const StepJournal again(files, kJournalPath, kJournalRun);
  EXPECT_EQ(again.steps(), 6);
  EXPECT_EQ(again.recovered().size(), 3U);
  EXPECT_EQ(again.find(3), nullptr);
  ASSERT_NE(again.find(5), nullptr);
  EXPECT_EQ(*again.find(5), record(5));
}

TEST(JournalText, SaysTheSameAgainWhateverItSays) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    SCOPED_TRACE(trial);
    JournalContents contents;
    std::uint64_t seed = hash_in_line(journal_header(kJournalRun));
    std::string text = journal_header(kJournalRun);
    const auto add = [&](const JournalLine& line) {
      text += journal_line(line, seed);
      seed = hash_in_line(std::string_view(text).substr(text.size() - kLine));
    };
    Step steps = 0;
    for (int lines = static_cast<int>(random() % 30); lines > 0; --lines) {
      const Step back = static_cast<Step>(random() % static_cast<std::uint64_t>(steps + 1));
      switch (random() % 8) {
        case 0:
          add({JournalKind::kWeights, back, 0, random()});
          break;
        case 1:
          add({JournalKind::kKernels, back, 0, random()});
          break;
        case 2:
          add({JournalKind::kOtherKernels, back, 0, random()});
          steps = back;
          break;
        case 3:
          add({JournalKind::kLost, steps, 0, 3});
          steps += 3;
          break;
        default:
          add({JournalKind::kStep, steps++, random(), random()});
      }
    }
    const JournalReading read = read_journal(text, kJournalRun);
    EXPECT_FALSE(read.is_damaged);
    EXPECT_EQ(read.whole_bytes, text.size());
    EXPECT_EQ(read.contents.steps, steps);
    const JournalReading again =
        read_journal(journal_text(read.contents, kJournalRun), kJournalRun);
    EXPECT_FALSE(again.is_damaged);
    EXPECT_EQ(again.contents.records, read.contents.records);
    EXPECT_EQ(again.contents.weights, read.contents.weights);
    EXPECT_EQ(again.contents.steps, read.contents.steps);
    EXPECT_EQ(again.contents.kernels.size(), read.contents.kernels.size());
  }
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
  EXPECT_EQ(kept_aside(disk), "");
}

TEST(StepJournal, KeepsWhatIsNoJournalAndBeginsAnew) {
  for (const std::string text : {"a shopping list\n", "", "frazil.step_journal v1\n"}) {
    DiskModel disk;
    const FileSystem files = disk.files();
    write_file(files, kJournalPath, text);
    const StepJournal journal(files, kJournalPath, kJournalRun);
    EXPECT_EQ(journal.steps(), 0);
    EXPECT_NE(journal.kept_aside(), "");
    EXPECT_EQ(kept_aside(disk), text);
  }
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
      // Of steps that were not acknowledged, one may be there behind one that is not.
      ASSERT_GE(journal.steps(), acknowledged);
      expect_some_records(journal.recovered());
      for (Step step = 0; step < acknowledged; ++step) ASSERT_NE(journal.find(step), nullptr);
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
