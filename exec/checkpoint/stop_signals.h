#pragma once
// SIGTERM and SIGINT ask a run to end at its next step boundary; the second of a kind ends the
// process as ever. While an object lives; one at a time.

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
