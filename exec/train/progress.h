#pragma once
// Progress for people: one line that is rewritten on a terminal (bar, samples/s, ETA), a plain line
// every few seconds elsewhere. Goes to stderr; silent when `quiet`. For one thread.

#include <chrono>
#include <cstdint>
#include <string>

namespace frazil {

class Progress {
 public:
  Progress(std::string title, std::int64_t total, bool quiet, std::string unit = "samples");
  ~Progress();  // draws what was not yet drawn and ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of `total`, with a short note ("epoch 3, loss 0.412").
  void update(std::int64_t done, const std::string& note);
  // A line of its own that stays.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  std::string title_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool quiet_;
  bool terminal_;
  bool is_drawn_ = true;  // the latest update
  bool is_open_ = false;  // the terminal's line waits for its end
  Clock::time_point start_;
  Clock::time_point updated_;
  Clock::time_point drawn_;
  std::string note_;
  std::string unit_;
};

// Where a run stands, as its line is made from it.
struct ProgressState {
  std::string title;
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::chrono::nanoseconds elapsed{0};
  std::string note;
  std::string unit = "samples";
};

// "train 45%, 1024 of 2048, 312 samples/s, ETA 4:05, epoch 3, loss 0.412"; the time left follows
// from the mean rate since the start, and a finished run says how long it took ("in 8:10").
std::string plain_line(const ProgressState& state);
// The same with a bar, cut to `columns` columns; 0: as long as it gets.
std::string bar_line(const ProgressState& state, int columns);

// Whether a line may be drawn again: ten times a second on a terminal, every 5 s elsewhere.
bool is_progress_due(std::chrono::nanoseconds since_drawn, bool is_terminal);

// "1:02:03", "4:05", "12 s".
std::string to_clock_text(std::chrono::seconds seconds);

}  // namespace frazil
