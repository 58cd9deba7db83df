#include "planner/actions/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "planner/actions/message.h"

namespace frazil {
namespace {

bool is_message(const Action& action) { return is_send(action) || is_receive(action); }

// Returns the text of the peer action: the RECV of a SEND, or the SEND of a RECV.
std::string other_end(const Action& action) {
  const Message message = message_of(action);
  return to_text(is_send(action) ? receive_of(message) : send_of(message));
}

// Runs the lists with messages that meet only when both ends are open. A device has one batch of
// messages open at a time: a single message just in time, neighbours on the list when grouped.
class Meeting {
 public:
  Meeting(const Schedule& completed, bool grouped)
      : schedule_(completed),
        senders_(find_sending_devices(completed)),
        receivers_(find_receiving_devices(completed)),
        grouped_(grouped),
        next_(completed.devices.size(), 0),
        open_(completed.devices.size()) {}

  std::optional<std::string> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t device = 0; device < open_.size(); ++device) open_group(device);
      for (std::size_t device = 0; device < open_.size(); ++device) {
        progress = hand_over(device) || progress;
      }
    }
    for (std::size_t device = 0; device < open_.size(); ++device) {
      if (!open_[device].empty()) return describe(device);
    }
    return std::nullopt;
  }

 private:
  void open_group(std::size_t device) {
    const std::vector<Action>& list = schedule_.devices[device];
    std::size_t& next = next_[device];
    if (!open_[device].empty()) return;
    while (next < list.size() && !is_message(list[next])) ++next;
    while (next < list.size() && is_message(list[next])) {
      open_[device].push_back(&list[next++]);
      if (!grouped_) return;
    }
  }

  // Lets one SEND of the device meet its RECV; returns false if none can. There are no tags, so the
  // first open SEND to a device meets the first RECV from here that is open there.
  bool hand_over(std::size_t device) {
    std::set<std::size_t> tried;
    for (const Action* send :
         std::vector<const Action*>(open_[device].begin(), open_[device].end())) {
      if (!is_send(*send)) continue;
      const auto to = receivers_.find(message_of(*send));
      if (to == receivers_.end() || !tried.insert(to->second).second) continue;
      std::deque<const Action*>& there = open_[to->second];
      const auto receive = std::find_if(there.begin(), there.end(), [&](const Action* candidate) {
        if (!is_receive(*candidate)) return false;
        const auto from = senders_.find(message_of(*candidate));
        return from != senders_.end() && from->second == device;
      });
      if (receive == there.end() || message_of(**receive) != message_of(*send)) continue;
      there.erase(receive);
      std::erase(open_[device], send);
      return true;
    }
    return false;
  }

  std::string describe(std::size_t device) const {
    const Action& waits = *open_[device].front();
    const MessageDevices& ends = is_send(waits) ? receivers_ : senders_;
    const auto peer = ends.find(message_of(waits));
    std::string text =
        fmt::format("device {} waits at {} for {}", device, to_text(waits), other_end(waits));
    if (peer == ends.end()) return text + ", which is on no list";
    const auto& there = open_[peer->second];
    if (there.empty()) return text + fmt::format(", but device {} is at its end", peer->second);
    return text + fmt::format(", but device {} waits at {}", peer->second, to_text(*there.front()));
  }

  const Schedule& schedule_;
  MessageDevices senders_;
  MessageDevices receivers_;
  bool grouped_;
  std::vector<std::size_t> next_;
  std::vector<std::deque<const Action*>> open_;  // by device, in the order of its list
};

// The SENDs by sending and receiving device, in the order of sending.
using SentMessages = std::map<std::pair<std::size_t, std::size_t>, std::deque<const Action*>>;

std::string describe_missing_end(std::size_t device, const Action& action) {
  return fmt::format("device {} waits at {} for {}, which is on no list", device, to_text(action),
                     other_end(action));
}

// Fills `sent`, or says which message nobody receives.
std::optional<std::string> send_all(const Schedule& completed, SentMessages& sent) {
  const MessageDevices receivers = find_receiving_devices(completed);
  for (std::size_t device = 0; device < completed.devices.size(); ++device) {
    for (const Action& action : completed.devices[device]) {
      if (!is_send(action)) continue;
      const auto to = receivers.find(message_of(action));
      if (to == receivers.end()) return describe_missing_end(device, action);
      sent[{device, to->second}].push_back(&action);
    }
  }
  return std::nullopt;
}

// Runs the lists when only an action whose messages have not arrived holds a device up. There are
// no tags, so the messages between two devices meet in the order in which each device posts them.
std::optional<std::string> run_eagerly(const Schedule& completed) {
  SentMessages sent;
  if (auto missing = send_all(completed, sent)) return missing;
  const MessageDevices senders = find_sending_devices(completed);
  for (std::size_t device = 0; device < completed.devices.size(); ++device) {
    for (const Action& action : completed.devices[device]) {
      if (!is_receive(action)) continue;
      const auto from = senders.find(message_of(action));
      if (from == senders.end()) return describe_missing_end(device, action);
      std::deque<const Action*>& queue = sent[{from->second, device}];
      if (queue.empty()) return describe_missing_end(device, action);
      if (message_of(*queue.front()) != message_of(action)) {
        return fmt::format("{} of device {} would meet {} of device {}", to_text(*queue.front()),
                           from->second, to_text(action), device);
      }
      queue.pop_front();
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view message_lowering_name(MessageLowering lowering) {
  switch (lowering) {
    case MessageLowering::kEagerReceive:
      return "eager receive";
    case MessageLowering::kJustInTime:
      return "just in time";
    case MessageLowering::kGrouped:
      return "grouped";
  }
  return "";
}

std::optional<std::string> find_deadlock(const Schedule& completed, MessageLowering lowering) {
  switch (lowering) {
    case MessageLowering::kEagerReceive:
      return run_eagerly(completed);
    case MessageLowering::kJustInTime:
      return Meeting(completed, false).run();
    case MessageLowering::kGrouped:
      return Meeting(completed, true).run();
  }
  return std::nullopt;
}

}  // namespace frazil
