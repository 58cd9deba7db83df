// Tests files of torch.distributed.pipelining as they come: good, bad and legacy.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "planner/interop/pytorch_csv.h"
#include "profiles/error.h"
#include "profiles/text_file.h"

namespace frazil {
namespace {

std::string complaint(const std::string& text, LegacyPytorch legacy = LegacyPytorch::kRefuse) {
  try {
    parse_pytorch_csv(text, "bad.csv", legacy);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ParsePytorchCsv, ReadsBothDialectsAndWhereTheStagesLie) {
  const PytorchSchedule only = parse_pytorch_csv(
      "0F0,,3F0,(0F1;3B0)OVERLAP_F_B,3F1,0I0,3B1,0W0,0B1\r\n"
      ",1F0,2F0,1F1,2B0,2F1,1B0,2I1,2W1,1B1\r\n",
      "v.csv");
  EXPECT_EQ(to_text(only.schedule),
            "d0: 0F0 3F0 (0F1;3B0)OVERLAP_F_B 3F1 0I0 3B1 0W0 0B1\n"
            "d1: 1F0 2F0 1F1 2B0 2F1 1B0 2I1 2W1 1B1\n");
  EXPECT_EQ(only.dialect, PytorchDialect::kComputeOnly);
  EXPECT_EQ(only.shape.stages, 4);
  EXPECT_EQ(only.shape.micro_batches, 2);
  EXPECT_EQ(only.shape.rank_of_stage,
            (std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{1}, DeviceId{0}}));
  const PytorchSchedule comms = parse_pytorch_csv(
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
      "1RECV_F0,1F0,1B0,1SEND_B0\n",
      "comms.csv");
  EXPECT_EQ(to_text(comms.schedule),
            "d0: 0UNSHARD 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0RESHARD\n"
            "d1: 1RECV_F0 1F0 1B0 1SEND_B0\n");
  EXPECT_EQ(comms.dialect, PytorchDialect::kComputeComms);
}

TEST(ParsePytorchCsv, ImportedRanksTakeTheFirstDevicesOfALargerCluster) {
  const PytorchSchedule imported = parse_pytorch_csv(
      "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n", "small.csv");
  EXPECT_EQ(to_text(Schedule{to_explicit_schedule(imported, 3).devices}),
            "d0: 0F0 0B0\nd1: 1F0 1B0\nd2:\n");
}

TEST(ParsePytorchCsv, BubblesSpacesAndLineEndsDoNotMatter) {
  const std::string plain = "0F0,0B0\n1F0,1B0\n";
  const Schedule schedule = parse_pytorch_csv(plain, "plain.csv").schedule;
  for (const char* other : {"0F0,0B0\r\n1F0,1B0\r\n", "0F0,,,0B0,\n,1F0,1B0\n",
                            "0F0 , 0B0\n 1F0,1B0", ",,0F0,0B0\n1F0,1B0,,"}) {
    EXPECT_EQ(parse_pytorch_csv(other, "other.csv").schedule, schedule) << other;
  }
}

TEST(ParsePytorchCsv, BadFilesAreNamedWithTheirLine) {
  const std::string cells =
      "an F, B, I, W, SEND, RECV, REDUCE_GRAD, UNSHARD, RESHARD or pair of one stage and "
      "micro-batch";
  const std::string whole = "every micro-batch forward and backward through every stage";
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "bad.csv: found an empty file, expected a row of actions per rank"},
      {"0F0,0B0\n1R0\n", "bad.csv:2: found `1R0`, expected " + cells},
      {"0F0,0U\n", "bad.csv:1: found `0U`, expected " + cells},
      {"0F0,0F1.2\n", "bad.csv:1: found `0F1.2`, expected " + cells},
      {"0F0-1,0B0\n", "bad.csv:1: found `0F0-1`, expected " + cells},
      {"1:0F0,1:0B0\n", "bad.csv:1: found `1:0F0`, expected " + cells},
      {"0F0,0SEND_F0>2\n", "bad.csv:1: found `0SEND_F0>2`, expected " + cells},
      {"0F0,0B0\n\n", "bad.csv:2: found no action, expected a stage on every rank"},
      {"\n\n0F0,0B0\n", "bad.csv:1: found no action, expected a stage on every rank"},
      {"0F0,0B0\n,,\n", "bad.csv:2: found no action, expected a stage on every rank"},
      {"0F0,0B0\n2F0,2B0\n",
       "bad.csv:2: found stage 2 but no stage 1, expected stages counted from 0 without a gap"},
      {"0F0,0B0\n0F1,0B1\n", "bad.csv:2: found 0F1, expected all of stage 0 on rank 0"},
      {"0F0,0F0,0B0\n", "bad.csv:1: found 0F0 again, expected every action once"},
      {"0F0,0B0,0B0\n", "bad.csv:1: found 0B0 again, expected every action once"},
      {"0F0,0B0,0I0\n",
       "bad.csv:1: found 0I0 beside another backward, expected B alone, or I and W"},
      {"0B0,0F0\n", "bad.csv:1: found 0B0, expected 0F0 before it"},
      {"0F0,0W0,0I0\n", "bad.csv:1: found 0W0, expected 0I0 before it"},
      {"0F0,0I0\n", "bad.csv:1: found no 0W0, expected " + whole},
      {"0F0,0F1,0B0\n", "bad.csv:1: found no 0B1, expected " + whole},
      {"0F0,0F2,0B0,0B2\n", "bad.csv:1: found no 0F1, expected " + whole},
      {"0F0,0B0\n1F2147483647,1B2147483647\n", "bad.csv:1: found no 0F1, expected " + whole},
      {"0F0,0B0\n2147483647F0,1B0\n",
       "bad.csv:2: found stage 2147483647 but no stage 2, expected stages counted from 0 without "
       "a gap"},
      {"1F0,0F0,1B0,0B0\n",
       "bad.csv:1: found 1F0, expected the F of stage 0 before it, on the same rank"},
      {"0F0,1F0,0B0,1B0\n",
       "bad.csv:1: found 0B0, expected the backward of stage 1 before it, on the same rank"},
      {first + "1RECV_F0,,1F0,1B0,1SEND_B0\n",
       "bad.csv:2: found an empty cell, expected no bubbles in a file with more than compute "
       "actions"},
      {first + "1F0,1RECV_F0,1B0,1SEND_B0\n", "bad.csv:2: found 1F0, expected 1RECV_F0 before it"},
      {first + "1RECV_F0,1F0,1SEND_B0,1B0\n",
       "bad.csv:2: found 1SEND_B0, expected the backward that makes it before it"},
      {first + "1RECV_F0,1F0,1B0\n",
       "bad.csv:2: found no 1SEND_B0, expected a SEND of all that another rank needs"},
      {first + "1RECV_F0,1RECV_F0,1F0,1B0,1SEND_B0\n",
       "bad.csv:2: found 1RECV_F0 again, expected every action once"},
      {first + "1RECV_F0,1F0,1B0,1RECV_B0,1SEND_B0\n",
       "bad.csv:2: found 1RECV_B0, expected messages only between neighbouring stages on different "
       "ranks"},
      {"0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n",
       "bad.csv:1: found 0SEND_F0, expected messages only between neighbouring stages on different "
       "ranks"},
      {"0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F1,1F1,1RECV_F0,1F0,1B0,1SEND_B0,1B1,1SEND_B1\n",
       "bad.csv:2: found 1RECV_F1, expected 1RECV_F0 first, as rank 0 sends it"},
      {"0F0,0REDUCE_GRAD,0B0\n",
       "bad.csv:1: found 0REDUCE_GRAD, expected it after the last backward of stage 0"},
      {"0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n",
       "bad.csv:1: found 0REDUCE_GRAD again, expected every action once"},
  };
  for (const auto& [text, sentence] : table) {
    SCOPED_TRACE(text);
    EXPECT_EQ(complaint(text), sentence);
  }
}

TEST(ParsePytorchCsv, CellsOutsideTheGrammarAreNamedWithTheirLine) {
  for (const char* cell :
       {"F0", "2X0", "2F", "2f0", "2F-1", "02F0", "2F0x", "2 F0", "\"2F0\"", "(0F1;0B0)",
        "(0F1;0B0)OVERLAP", "(0B0;0F1)OVERLAP_F_B", "2SEND_X0", "0BARRIER", "2BW", "BW0", "\xff"}) {
    SCOPED_TRACE(cell);
    const std::string sentence = complaint(fmt::format("0F0,0B0\n1F0,{}\n", cell));
    EXPECT_EQ(sentence.find("bad.csv:2: found "), 0U) << sentence;
  }
}

std::string converted(const std::string& text) {
  return to_text(parse_pytorch_csv(text, "legacy.csv", LegacyPytorch::kConvert).schedule);
}

TEST(ParsePytorchCsv, LegacyFilesAreRefusedUntilAskedFor) {
  const std::string refused =
      "found the legacy names, B for I and BW for B, expected the names I, W and B, or a request "
      "to convert";
  const std::string split = "0F0,,0B0,0W0\n1F0,1B0,1W0\n";
  const std::string full = "0F0,0B0\n1F0,1BW0\n";
  const std::string mixed = "0F0,0BW0\n1F0,1B0,1W0\n";
  EXPECT_EQ(complaint(split), "bad.csv:1: " + refused);
  EXPECT_EQ(complaint(full), "bad.csv:2: " + refused);
  EXPECT_EQ(complaint(mixed), "bad.csv:1: " + refused);
  EXPECT_EQ(converted(split), "d0: 0F0 0I0 0W0\nd1: 1F0 1I0 1W0\n");
  EXPECT_EQ(converted(mixed), "d0: 0F0 0B0\nd1: 1F0 1I0 1W0\n");
  // A legacy B without a W is half a backward.
  EXPECT_EQ(complaint(full, LegacyPytorch::kConvert),
            "bad.csv:1: found no 0W0, expected every micro-batch forward and backward through "
            "every stage");
  EXPECT_EQ(converted("0F0,0SEND_F0,0RECV_B0,0BW0\n1RECV_F0,1F0,1B0,1SEND_B0,1W0\n"),
            "d0: 0F0 0SEND_F0 0RECV_B0 0B0\nd1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
}

TEST(ParsePytorchCsv, TheSeedsOfTheFuzzerAreGoodFiles) {
  const auto folder = std::filesystem::path(FRAZIL_SOURCE_FOLDER) / "tests/fuzz/seeds/pytorch_csv";
  int todays = 0;
  int legacy = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string text = read_text_file(entry.path());
    EXPECT_NO_THROW(parse_pytorch_csv(text, entry.path(), LegacyPytorch::kConvert));
    (complaint(text) == "accepted" ? todays : legacy) += 1;
  }
  EXPECT_GE(todays, 8);
  EXPECT_GE(legacy, 2);
}

// No number in a file is used as a size before it is checked.
TEST(ParsePytorchCsv, NumbersFarOutAreRefused) {
  const std::string whole = "every micro-batch forward and backward through every stage";
  const std::string number =
      "expected a number below 2147483648 without leading zeros at character ";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"0F99999999999\n", "bad.csv:1: found action \"0F99999999999\", " + number + "3"},
      {"99999999999F0\n", "bad.csv:1: found action \"99999999999F0\", " + number + "1"},
      {"0F2147483647,0B2147483647\n", "bad.csv:1: found no 0F0, expected " + whole},
      {"0F0,0B0,0F2147483647,0B2147483647\n", "bad.csv:1: found no 0F1, expected " + whole},
      {"0F0,0B0\n2147483647UNSHARD\n",
       "bad.csv:2: found stage 2147483647 but no stage 1, expected stages counted from 0 without a "
       "gap"},
      {"0F0,0B0,0SEND_F2147483647\n",
       "bad.csv:1: found 0SEND_F2147483647, expected messages only between neighbouring stages on "
       "different ranks"},
  };
  for (const auto& [text, sentence] : table) {
    SCOPED_TRACE(text);
    EXPECT_EQ(complaint(text), sentence);
  }
}

TEST(ParsePytorchCsv, TodaysFilesStayAsTheyAreWhenConversionIsAskedFor) {
  EXPECT_EQ(converted("0F0,0F1,0B0,0I1,0W1\n"), "d0: 0F0 0F1 0B0 0I1 0W1\n");
}

}  // namespace
}  // namespace frazil
