#include "exec/train/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ClockText, GrowsFromSecondsToHours) {
  EXPECT_EQ(to_clock_text(seconds(0)), "0 s");
  EXPECT_EQ(to_clock_text(seconds(59)), "59 s");
  EXPECT_EQ(to_clock_text(seconds(60)), "1:00");
  EXPECT_EQ(to_clock_text(seconds(245)), "4:05");
  EXPECT_EQ(to_clock_text(seconds(3599)), "59:59");
  EXPECT_EQ(to_clock_text(seconds(3600)), "1:00:00");
  EXPECT_EQ(to_clock_text(seconds(3723)), "1:02:03");
  EXPECT_EQ(to_clock_text(seconds(360'000)), "100:00:00");
  EXPECT_EQ(to_clock_text(seconds(-5)), "0 s");
}

TEST(ProgressLine, ForetellsTheEndFromTheMeanRate) {
  const ProgressState state{"train", 500, 2000, seconds(10), "epoch 3, loss 0.412", "samples"};
  EXPECT_EQ(plain_line(state),
            "train 25%, 500 of 2000, 50.0 samples/s, ETA 30 s, epoch 3, loss 0.412");
  EXPECT_EQ(bar_line(state, 0),
            "train [======>                 ] 25%, 500 of 2000, 50.0 samples/s, ETA 30 s, "
            "epoch 3, loss 0.412");
}

TEST(ProgressLine, SaysHowLongAFinishedRunTook) {
  const ProgressState state{"train", 2000, 2000, seconds(490), ""};
  EXPECT_EQ(plain_line(state), "train 100%, 2000 of 2000, 4.1 samples/s, in 8:10");
  EXPECT_EQ(bar_line(state, 0),
            "train [========================] 100%, 2000 of 2000, 4.1 samples/s, in 8:10");
}

TEST(ProgressLine, IsSaneAtTheEdges) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(plain_line({"x", 0, 10, seconds(0), ""}), "x 0%, 0 of 10");
  EXPECT_EQ(plain_line({"x", 0, 10, seconds(9), "waits"}), "x 0%, 0 of 10, waits");
  EXPECT_EQ(plain_line({"x", 0, 0, seconds(0), ""}), "x 100%, 0 of 0, in 0 s");
  EXPECT_EQ(plain_line({"x", 999, 1000, seconds(9990), ""}),
            "x 99%, 999 of 1000, 0.1 samples/s, ETA 10 s");
  EXPECT_EQ(plain_line({"x", 1, kMost, seconds(1), ""}),
            "x 0%, 1 of 9223372036854775807, 1.0 samples/s, ETA 1000000:00:00");
  EXPECT_EQ(plain_line({"x", 5, 10, milliseconds(1), ""}),
            "x 50%, 5 of 10, 5000 samples/s, ETA 0 s");
}

TEST(ProgressLine, IsCutToTheTerminalAtWholeCharacters) {
  const ProgressState state{"caf\xc3\xa9", 1, 2, seconds(1), ""};
  EXPECT_EQ(bar_line(state, 3), "caf");
  EXPECT_EQ(bar_line(state, 4), "caf\xc3\xa9");
  EXPECT_EQ(bar_line(state, 8), "caf\xc3\xa9 [==");
  EXPECT_EQ(bar_line(state, 1000), bar_line(state, 0));
}

TEST(Progress, IsDueTenTimesASecondOnATerminalAndEveryFiveSecondsElsewhere) {
  EXPECT_FALSE(is_progress_due(milliseconds(99), true));
  EXPECT_TRUE(is_progress_due(milliseconds(100), true));
  EXPECT_FALSE(is_progress_due(milliseconds(4999), false));
  EXPECT_TRUE(is_progress_due(milliseconds(5000), false));
}

// A short run writes nothing but its last line where stderr is a file.
TEST(Progress, WritesTheLastLineToAFile) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("train", 1000, false);
    for (int done = 1; done <= 1000; ++done) progress.update(done, "loss 0.5");
    progress.say("layers 0 to 3 froze");
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("layers 0 to 3 froze\ntrain 100%, 1000 of 1000, "), 0U) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.substr(text.rfind(", ")), ", loss 0.5\n");
}

TEST(Progress, IsSilentWhenQuietOrNeverUpdated) {
  ::testing::internal::CaptureStderr();
  {
    Progress quiet("train", 2, true);
    quiet.update(1, "note");
    quiet.say("line");
    quiet.update(2, "note");
    const Progress unused("profile", 2, false);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Stands in for stderr with a terminal of 40 columns; text() is what it was sent.
class TerminalStderr {
 public:
  TerminalStderr() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    slave_ = open(ptsname(master_), O_RDWR | O_NOCTTY);
    winsize size{};
    size.ws_col = 40;
    if (slave_ < 0 || ioctl(slave_, TIOCSWINSZ, &size) != 0) return;
    std::fflush(stderr);
    saved_ = dup(STDERR_FILENO);
    dup2(slave_, STDERR_FILENO);
  }
  ~TerminalStderr() {
    if (saved_ >= 0) dup2(saved_, STDERR_FILENO);
    for (const int descriptor : {saved_, slave_, master_}) {
      if (descriptor >= 0) close(descriptor);
    }
  }
  TerminalStderr(const TerminalStderr&) = delete;
  TerminalStderr& operator=(const TerminalStderr&) = delete;

  bool is_open() const { return saved_ >= 0; }
  // Reads up to the end of a line, which the terminal may hand out in pieces, or until nothing has
  // come for 10 s.
  std::string text() const {
    std::string all;
    pollfd readable{.fd = master_, .events = POLLIN, .revents = 0};
    while ((all.empty() || all.back() != '\n') && poll(&readable, 1, 10'000) == 1) {
      std::array<char, 4096> buffer{};
      const ssize_t count = read(master_, buffer.data(), buffer.size());
      if (count <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return all;
  }

 private:
  int master_ = -1;
  int slave_ = -1;
  int saved_ = -1;
};

TEST(Progress, RewritesOneLineOnATerminal) {
  const TerminalStderr terminal;
  if (!terminal.is_open()) GTEST_SKIP() << "no pseudo terminal here";
  {
    Progress progress("train", 100, false);
    progress.update(100, "a note that is far too long for forty columns");
  }
  const std::string text = terminal.text();
  // 39 columns: the last one stays free. The terminal turns \n into \r\n.
  EXPECT_EQ(text, "\r\x1b[Ktrain [========================] 100%, \r\n");
}

}  // namespace
}  // namespace frazil
