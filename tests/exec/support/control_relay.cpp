#include "tests/exec/support/control_relay.h"

#include <poll.h>

#include <utility>
#include <variant>
#include <vector>

#include "exec/links/socket.h"
#include "exec/run/jobs/job_codec.h"

namespace frazil {
namespace {

struct NameOfJob {
  std::string operator()(const JoinJob&) const { return "join"; }
  std::string operator()(const PrepareJob&) const { return "prepare"; }
  std::string operator()(const TakeJob&) const { return "take"; }
  std::string operator()(const AdoptJob&) const { return "adopt"; }
  std::string operator()(const StepJob&) const { return "step"; }
  std::string operator()(const ClearSumsJob&) const { return "clear sums"; }
  template <class Other>
  std::string operator()(const Other&) const {
    return "another job";
  }
};

}  // namespace

ControlRelay::ControlRelay(Judge judge, Cut cut)
    : judge_(std::move(judge)),
      cut_(std::move(cut)),
      to_leader_([this] {
        SocketPair pair = make_socket_pair();
        leader_end_ = std::move(pair[0]);
        return std::move(pair[1]);
      }()),
      to_member_([this] {
        SocketPair pair = make_socket_pair();
        member_end_ = std::move(pair[0]);
        return std::move(pair[1]);
      }()),
      thread_([this] { relay(); }) {}

ControlRelay::~ControlRelay() { thread_.join(); }

void ControlRelay::relay() {
  bool goes_on = true;
  while (goes_on) {
    pollfd entries[] = {{to_leader_.descriptor(), POLLIN, 0}, {to_member_.descriptor(), POLLIN, 0}};
    (void)::poll(entries, 2, -1);
    goes_on = (entries[0].revents == 0 || hand_on(to_leader_, to_member_)) &&
              (entries[1].revents == 0 || hand_on(to_member_, to_leader_));
  }
  to_leader_.shut_down();
  to_member_.shut_down();
}

// Returns false at the end of the connection.
bool ControlRelay::hand_on(ControlSocket& from, ControlSocket& to) {
  std::vector<ControlMessage> messages;
  const bool is_open = from.receive(messages);
  for (const ControlMessage& message : messages) {
    const std::string name = name_of(message);
    const Verdict verdict = name.empty() ? Verdict::kPass : judge_(name);
    if (verdict != Verdict::kCutBefore && !to.send(message)) return false;
    if (verdict == Verdict::kPass) continue;
    cut_();
    return false;
  }
  return is_open;
}

std::string ControlRelay::name_of(const ControlMessage& message) {
  if (const auto* const order = std::get_if<OrderMessage>(&message)) {
    return jobs_[order->number] = std::visit(NameOfJob{}, decode<Job>(order->job));
  }
  if (const auto* const answer = std::get_if<AnswerMessage>(&message)) {
    return jobs_[answer->number] + " done";
  }
  if (std::holds_alternative<ReadyMessage>(message)) return "ready";
  if (std::holds_alternative<CommitMessage>(message)) return "commit";
  return "";
}

}  // namespace frazil
