#include "traces/timeline_csv.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "profiles/error.h"
#include "profiles/text_file.h"
#include "tests/support/golden.h"
#include "tests/traces/sample_timelines.h"

namespace frazil {
namespace {

constexpr const char* kTop =
    "# frazil.timeline 1 devices=2\n"
    "device,lane,step,action,start_ns,end_ns\n";

TEST(TimelineCsv, WritesHandMade1f1b) {
  EXPECT_TRUE(matches_golden("traces_1f1b_3x4.csv", to_csv(make_1f1b_3x4(1000))));
}

TEST(TimelineCsv, WritesAndReadsEveryColumn) {
  const Timeline timeline{
      .devices = 2,
      .spans = {
          make_span(1, "1:2SEND_F0-3.1>5", -5, 12, Lane::kSend, 7),
          make_span(0, "2MOVE(stash[3-5]0@7 d0>host)", 0, 4611686018427387903, Lane::kHost, 8),
          make_span(1, "(2F1;2B0)OVERLAP_F_B", 3, 3, Lane::kCompute, 9223372036854775807)}};
  const std::string text = std::string(kTop) +
                           "1,send,7,1:2SEND_F0-3.1>5,-5,12\n"
                           "0,host,8,2MOVE(stash[3-5]0@7 d0>host),0,4611686018427387903\n"
                           "1,compute,9223372036854775807,(2F1;2B0)OVERLAP_F_B,3,3\n";
  EXPECT_EQ(to_csv(timeline), text);
  EXPECT_EQ(parse_timeline_csv(text, "t.csv"), timeline);
}

TEST(TimelineCsv, TellsHowSureTheClocksOfSeveralProcessesAre) {
  const Timeline timeline = make_1f1b_3x4(1000);
  const std::string text = to_csv(timeline, Duration{1'234});
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "# frazil.timeline 1 devices=3 clock_uncertainty_ns=1234");
  Timeline sorted = timeline;
  sort_spans(sorted);
  EXPECT_EQ(parse_timeline_csv(text, "t.csv"), sorted);
  EXPECT_EQ(parse_clock_uncertainty(text, "t.csv"), Duration{1'234});
  EXPECT_EQ(parse_clock_uncertainty(to_csv(timeline), "t.csv"), std::nullopt);
  EXPECT_THROW((void)parse_timeline_csv("# frazil.timeline 1 devices=3 clock_uncertainty_ns=-1\n" +
                                            text.substr(text.find('\n') + 1),
                                        "t.csv"),
               InputError);
}

TEST(TimelineCsv, ReadsBackWhatItWrote) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomActions random(seed);
    Timeline timeline = make_random_timeline(random);
    const std::string text = to_csv(timeline);
    const Timeline again = parse_timeline_csv(text, "t.csv");
    sort_spans(timeline);
    ASSERT_EQ(again, timeline);
    ASSERT_EQ(to_csv(again), text);
  }
}

TEST(TimelineCsv, KeepsATimelineWithoutSpansOrDevices) {
  EXPECT_EQ(parse_timeline_csv(to_csv(Timeline{}), "t.csv"), Timeline{});
  const Timeline idle{.devices = 5, .spans = {}};
  EXPECT_EQ(parse_timeline_csv(to_csv(idle), "t.csv"), idle);
}

TEST(TimelineCsv, GoesThroughAFile) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "frazil_timeline_csv_test.csv";
  const Timeline timeline = parse_timeline_csv(to_csv(make_1f1b_3x4(10)), "t.csv");
  write_text_file(path, to_csv(timeline));
  EXPECT_EQ(read_timeline_csv(path), timeline);
  std::filesystem::remove(path);
  EXPECT_THROW(read_timeline_csv(path), InputError);
}

struct BadFile {
  std::string text;
  int line;
  const char* message;  // part of the sentence
};

std::string with_lines(const std::string& lines) { return kTop + lines; }

TEST(TimelineCsv, RefusesBadFilesWithTheirLine) {
  const BadFile cases[] = {
      {"", 1, "an empty file"},
      {"device,lane,step,action,start_ns,end_ns\n", 1, "frazil.timeline 1"},
      {"# frazil.timeline 2 devices=2\n", 1, "frazil.timeline 1"},
      {"# frazil.timeline 1 devices=\n", 1, "devices"},
      {"# frazil.timeline 1 devices=-1\n", 1, "devices \"-1\""},
      {"# frazil.timeline 1 devices=1048577\n", 1, "an integer from 0 to 1048576"},
      {"# frazil.timeline 1 devices=2", 1, "a line without its end"},
      {"# frazil.timeline 1 devices=2\n", 2, "the end of the file"},
      {"# frazil.timeline 1 devices=2\ndevice,lane,action,start_ns,end_ns\n", 2,
       "device,lane,step"},
      {"# frazil.timeline 1 devices=2\r\ndevice,lane,step,action,start_ns,end_ns\r\n", 1,
       "devices"},
      {with_lines("0,compute,0,0F0,0,1"), 3, "a line without its end"},
      {with_lines("\n"), 3, "1 columns"},
      {with_lines("0,compute,0,0F0,0\n"), 3, "5 columns"},
      {with_lines("0,compute,0,0F0,0,1,\n"), 3, "7 columns"},
      {with_lines("0,compute,0,0F0,0,1\n0,compute,0,0F1,1,2\r\n"), 4, "end_ns"},
      {with_lines("2,compute,0,0F0,0,1\n"), 3, "device \"2\""},
      {with_lines("-1,compute,0,0F0,0,1\n"), 3, "device \"-1\""},
      {with_lines(",compute,0,0F0,0,1\n"), 3, "device \"\""},
      {with_lines("0,gpu,0,0F0,0,1\n"), 3, "lane \"gpu\""},
      {with_lines("0,compute,-1,0F0,0,1\n"), 3, "step \"-1\""},
      {with_lines("0,compute,0,0Q0,0,1\n"), 3, "action \"0Q0\""},
      {with_lines("0,compute,0,\"0F0\",0,1\n"), 3, "action"},
      {with_lines("0,compute,0,0F0,1.5,2\n"), 3, "start_ns \"1.5\""},
      {with_lines("0,compute,0,0F0, 1,2\n"), 3, "start_ns \" 1\""},
      {with_lines("0,compute,0,0F0,+1,2\n"), 3, "start_ns \"+1\""},
      {with_lines("0,compute,0,0F0,01,2\n"), 3, "start_ns \"01\""},
      {with_lines("0,compute,0,0F0,-0,2\n"), 3, "start_ns \"-0\""},
      {with_lines("0,compute,0,0F0,0,1e3\n"), 3, "end_ns \"1e3\""},
      {with_lines("0,compute,0,0F0,0,99999999999999999999\n"), 3, "end_ns"},
      {with_lines("0,compute,0,0F0,0,4611686018427387904\n"), 3, "4611686018427387903"},
      {with_lines("0,compute,0,0F0,-4611686018427387905,0\n"), 3, "-4611686018427387904"},
      {with_lines("0,compute,0,0F0,5,4\n"), 3, "end_ns 4 before start_ns 5"},
      {with_lines("0,compute,0,0F0,5,6\n0,compute,0,0F1,4,5\n"), 4, "before the one above"},
      {with_lines("0,compute,0,0F0,5,8\n0,compute,0,0F1,7,9\n"), 4, "before the last one ends"},
      {with_lines("0,host,0,0F0,-4611686018427387904,-4611686018427387904\n"
                  "0,compute,0,0F0,-4611686018427387904,4611686018427387903\n"
                  "1,compute,0,0F0,-4611686018427387904,4611686018427387903\n"),
       4, "before the one above"},
      {with_lines("0,compute,0,0F0,-4611686018427387904,4611686018427387903\n"
                  "1,compute,0,0F0,-4611686018427387904,4611686018427387903\n"),
       4, "add up"},
  };
  for (const BadFile& bad : cases) {
    SCOPED_TRACE(bad.text);
    try {
      parse_timeline_csv(bad.text, "t.csv");
      ADD_FAILURE() << "read";
    } catch (const InputError& error) {
      EXPECT_EQ(error.file(), "t.csv");
      EXPECT_EQ(error.line(), bad.line);
      EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos) << error.what();
    }
  }
}

TEST(TimelineCsv, KeepsTheSeedsOfTheFuzzer) {
  const auto folder = std::filesystem::path(FRAZIL_SOURCE_FOLDER) / "tests/fuzz/seeds/timeline_csv";
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    EXPECT_EQ(to_csv(read_timeline_csv(entry.path())), read_text_file(entry.path()));
    ++seeds;
  }
  EXPECT_GE(seeds, 3);
}

TEST(TimelineCsv, TheLongestTimelineHasALength) {
  const std::string text =
      std::string(kTop) + "0,host,0,0U,-4611686018427387904,4611686018427387903\n";
  const Timeline timeline = parse_timeline_csv(text, "t.csv");
  EXPECT_EQ(makespan(timeline), Duration::max());
  EXPECT_EQ(max_span(timeline), Duration::max());
  EXPECT_EQ(to_csv(timeline), text);
}

TEST(TimelineCsv, NeverWritesASpanThatCannotBeRead) {
  const auto refuses = [](const Span& span) {
    const Timeline timeline{.devices = 1, .spans = {span}};
    EXPECT_THROW(to_csv(timeline), std::logic_error);
  };
  refuses(make_span(1, "0F0", 0, 1));
  refuses(make_span(-1, "0F0", 0, 1));
  refuses(make_span(0, "0F0", 1, 0));
  refuses(make_span(0, "0F0", 0, 1, Lane::kCompute, -1));
  refuses(make_span(0, "0F0", 0, std::numeric_limits<std::int64_t>::max()));
  refuses(make_span(0, "0F0", 0, std::int64_t{1} << 62));
  Span pair = make_span(0, "(0F1;0B0)OVERLAP_F_B", 0, 1);
  pair.action.step = 1;
  refuses(pair);
  EXPECT_THROW(to_csv(Timeline{.devices = 1 << 21, .spans = {}}), std::logic_error);
  EXPECT_THROW(to_csv(Timeline{.devices = -1, .spans = {}}), std::logic_error);
}

}  // namespace
}  // namespace frazil
