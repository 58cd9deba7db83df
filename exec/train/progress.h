#pragma once
// Progress shows people how far a run is: on a terminal one line that is rewritten (bar, samples/s,
// ETA), elsewhere a plain line every few seconds. It goes to stderr and is silent when `quiet`.
// Only one thread may use it.

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

  // Shows that `done` of `total` are done, with a short note ("epoch 3, loss 0.412").
  void update(std::int64_t done, const std::string& note);
  // Writes a line of its own that stays.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  std::string title_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool quiet_;
  bool terminal_;
  bool is_drawn_ = true;  // whether the latest update is drawn
  bool is_open_ = false;  // whether the terminal's line waits for its end
  Clock::time_point start_;
  Clock::time_point updated_;
  Clock::time_point drawn_;
  std::string note_;
  std::string unit_;
};

// The state of a run from which its line is made.
struct ProgressState {
  std::string title;
  std::int64_t done = 0;
  std::int64_t total = 0;
  std::chrono::nanoseconds elapsed{0};
  std::string note;
  std::string unit = "samples";
};

// Returns "train 45%, 1024 of 2048, 312 samples/s, ETA 4:05, epoch 3, loss 0.412". The time left
// follows from the mean rate since the start; a finished run says how long it took ("in 8:10").
std::string plain_line(const ProgressState& state);
// Returns plain_line() with a bar, cut to `columns` columns; 0: not cut.
std::string bar_line(const ProgressState& state, int columns);

// True if a line may be drawn again: ten times a second on a terminal, every 5 s elsewhere.
bool is_progress_due(std::chrono::nanoseconds since_drawn, bool is_terminal);

// Returns "1:02:03", "4:05" or "12 s".
std::string to_clock_text(std::chrono::seconds seconds);

}  // namespace frazil
