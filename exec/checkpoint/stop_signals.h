#pragma once
// While an object lives, SIGTERM and SIGINT ask a run to end at its next step boundary; the second
// signal of a kind ends the process as by default. There is one object at a time.

namespace frazil {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int received() const;  // the signal that came first, or 0
};

}  // namespace frazil
