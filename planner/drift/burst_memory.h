#pragma once
// Remembers how great the bursts of noise of the last windows were. A burst is a score
// (drift_detector.h) that has risen and fallen back to 0; it is as great as the score was at most.
// It is kept for kBurstWindows windows after the one in which the score was 0 again, to the window,
// and then forgotten: a run whose machine has had long bursts of late waits for longer drifts, and
// one enormous burst does not blind it for good. All is counted in whole windows; those that are
// left out beside other programs as they end are none.

#include <vector>

namespace frazil {

// As many windows as a baseline has at most: a machine is taken to be as its bursts of that long
// ago were, as its noise is taken to be that of its baseline. In recorded noise
// (tests/planner/drift), bursts of two windows and more followed within 29 windows of each other.
inline constexpr int kBurstWindows = 64;

class BurstMemory {
 public:
  // Begins the next window that counts.
  void begin_window();
  // A score of at most so much has fallen back to 0 in this window. Requires: above 0.
  void add(int score);
  // Returns how great the greatest burst is of those that are kept; 0: there is none.
  int greatest() const { return bursts_.empty() ? 0 : bursts_.front().score; }
  // Returns how many windows have begun.
  int windows() const { return window_; }

 private:
  struct Burst {
    int window = 0;
    int score = 0;
  };
  std::vector<Burst> bursts_;  // the oldest first, each greater than all after it
  int window_ = 0;
};

}  // namespace frazil
