// frazil-member: a further process of a run that frazil train --procs has begun. Nobody starts it
// by hand: its sockets are inherited.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <string>
#include <utility>
#include <vector>

#include "exec/train/processes/member.h"
#include "exec/train/processes/member_processes.h"
#include "exec/verbs/verb_inputs.h"
#include "planner/verbs/command_line.h"
#include "planner/verbs/kernels_flag.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr int kMostProcesses = 4096;
constexpr int kLargestDescriptor = 1 << 20;

boost::program_options::options_description describe_flags() {
  boost::program_options::options_description flags("flags", 100);
  flags.add_options()                                                     //
      ("process", text_value("N"), "the number of this process, from 1")  //
      ("sockets", text_value("LIST"),
       "descriptors that it has inherited: of its leader, of the passage over which it gets those "
       "of "
       "processes that come later, then two of each other process; without those it comes late");
  add_kernels_flag(flags);
  return flags;
}

// Takes over a descriptor that was inherited, which its own children must not inherit.
Descriptor take_descriptor(int number) {
  if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0) {
    throw InputError("--sockets", 0, std::to_string(number), "the number of an open descriptor");
  }
  return Descriptor(number);
}

ExitCode run_member(const Flags& flags) {
  const int process = integer_or(flags, "process", 1, 1, kMostProcesses);
  const std::vector<int> numbers =
      checked_flags("sockets", required_text(flags, "sockets"), 3, kLargestDescriptor);
  if (numbers.size() % 2 != 0) {
    refuse_flags("--sockets with " + std::to_string(numbers.size()) + " descriptors",
                 "two, and two more for each other process");
  }
  Descriptor control = take_descriptor(numbers[0]);
  LateSockets late = take_from_leader(process, take_descriptor(numbers[1]));
  const std::size_t others = numbers.size() / 2 - 1;
  std::vector<PeerSockets> peers(others == 0 ? 0 : others + 1);
  std::size_t next = 2;
  for (std::size_t other = 0; other < peers.size(); ++other) {
    if (other == static_cast<std::size_t>(process)) continue;
    peers[other].steps = take_descriptor(numbers.at(next++));
    peers[other].bulk = take_descriptor(numbers.at(next++));
  }
  return static_cast<ExitCode>(
      serve_run(process, std::move(control), std::move(peers), std::move(late)).code);
}

// The leader decides when a run stops, so what a terminal or a launcher sends to all is not heard
// here. A leader that dies takes its members along.
void follow_leader() {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::signal(SIGINT, SIG_IGN);
  (void)::signal(SIGTERM, SIG_IGN);
  (void)::signal(SIGPIPE, SIG_IGN);
}

}  // namespace
}  // namespace frazil

int main(int argc, char** argv) {
  frazil::follow_leader();
  const frazil::Verb verb{"member", "Serves a run that frazil train --procs has begun.",
                          "frazil-member --process N --sockets LIST"};
  return frazil::run_verb(verb, argc, argv, frazil::describe_flags(), [](const auto& flags) {
    return frazil::run_with_torch(flags, [&] { return frazil::run_member(flags); });
  });
}
