#include "exec/checkpoint/stop_signals.h"

#include <csignal>

namespace frazil {
namespace {

// A handler may touch nothing else.
volatile std::sig_atomic_t first_signal = 0;

void note(int signal) {
  if (first_signal == 0) first_signal = signal;
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

StopSignals::~StopSignals() {
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGINT, SIG_DFL);
}

int StopSignals::received() const { return first_signal; }

}  // namespace frazil
