#include "exec/train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <utility>

#include "profiles/error.h"

namespace frazil {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kBarWidth = 24;
constexpr double kLongestSeconds = 3.6e9;  // a million hours
constexpr const char* kClearLine = "\r\x1b[K";

void write_text(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

// Returns the width of the terminal, 0 if it does not say.
int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Returns the part that is done, in [0, 1]. A finished run has reached 1, an empty one too.
double finished_part(const ProgressState& state) {
  if (state.done >= state.total) return 1;
  return std::max(0.0, static_cast<double>(state.done) / static_cast<double>(state.total));
}

std::string clock_text(double seconds) {
  const double bounded = std::clamp(seconds, 0.0, kLongestSeconds);
  return to_clock_text(std::chrono::seconds(std::llround(bounded)));
}

std::string rate_text(double rate, const std::string& unit) {
  char text[64];
  std::snprintf(text, sizeof text, rate < 99.95 ? "%.1f " : "%.0f ", rate);
  return text + unit + "/s";
}

// Returns everything that follows title and bar.
std::string figures(const ProgressState& state) {
  const double elapsed = std::chrono::duration_cast<Seconds>(state.elapsed).count();
  const auto done = static_cast<double>(state.done);
  std::string text = std::to_string(static_cast<int>(finished_part(state) * 100)) + "%, " +
                     std::to_string(state.done) + " of " + std::to_string(state.total);
  if (state.done > 0 && elapsed > 0) text += ", " + rate_text(done / elapsed, state.unit);
  if (state.done >= state.total) {
    text += ", in " + clock_text(elapsed);
  } else if (state.done > 0) {
    const auto left = static_cast<double>(state.total - state.done);
    text += ", ETA " + clock_text(elapsed * left / done);
  }
  if (!state.note.empty()) text += ", " + state.note;
  return text;
}

// Returns the first `columns` characters. Bytes that continue a UTF-8 character take no column.
std::string cut_to(const std::string& text, int columns) {
  int taken = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    if (!continues && ++taken > columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

std::string to_clock_text(std::chrono::seconds seconds) {
  const long long count = std::max<long long>(0, seconds.count());
  if (count < 60) return std::to_string(count) + " s";
  char text[64];
  const long long hours = count / 3600;
  const long long minutes = count / 60 % 60;
  if (hours > 0) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", hours, minutes, count % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", minutes, count % 60);
  }
  return text;
}

std::string plain_line(const ProgressState& state) { return state.title + " " + figures(state); }

std::string bar_line(const ProgressState& state, int columns) {
  const auto filled = static_cast<std::size_t>(finished_part(state) * kBarWidth);
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  const std::string line = state.title + " [" + bar + "] " + figures(state);
  return columns > 0 ? cut_to(line, columns) : line;
}

bool is_progress_due(std::chrono::nanoseconds since_drawn, bool is_terminal) {
  return since_drawn >= std::chrono::milliseconds(is_terminal ? 100 : 5000);
}

Progress::Progress(std::string title, std::int64_t total, bool quiet, std::string unit)
    : title_(std::move(title)),
      total_(total),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      updated_(start_),
      drawn_(start_),
      unit_(std::move(unit)) {
  ENSURE(total >= 0, "a total of at least 0");
}

Progress::~Progress() {
  // Progress is a courtesy: a line that cannot be made must not end the run.
  try {
    if (!is_drawn_) draw();
    if (is_open_) write_text("\n");
  } catch (const std::exception&) {
    is_open_ = false;
  }
}

void Progress::update(std::int64_t done, const std::string& note) {
  done_ = done;
  note_ = note;
  updated_ = Clock::now();
  is_drawn_ = quiet_;
  if (!quiet_ && is_progress_due(updated_ - drawn_, terminal_)) draw();
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  write_text((is_open_ ? kClearLine : "") + to_one_line(line) + "\n");
  if (std::exchange(is_open_, false)) draw();
}

void Progress::draw() {
  drawn_ = Clock::now();
  is_drawn_ = true;
  const ProgressState state{title_, done_, total_, updated_ - start_, note_, unit_};
  if (!terminal_) return write_text(plain_line(state) + "\n");
  // One column stays free: a character in the last one makes some terminals begin a new line.
  write_text(kClearLine + bar_line(state, std::max(0, terminal_columns() - 1)));
  is_open_ = true;
}

}  // namespace frazil
