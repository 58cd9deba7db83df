#include "planner/actions/message_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "planner/actions/deadlock.h"
#include "planner/actions/message.h"
#include "profiles/error.h"

namespace frazil {
namespace {

bool needs(const Action& action, const Action& receive) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    return std::any_of(pair->halves.begin(), pair->halves.end(),
                       [&](const Action& half) { return needs(half, receive); });
  }
  const bool kind_fits = receive.kind == ActionKind::kReceiveBackward
                             ? action.kind == ActionKind::kBackward ||
                                   action.kind == ActionKind::kBackwardInput ||
                                   action.kind == ActionKind::kBackwardWeight
                             : action.kind == ActionKind::kForward;
  const MicroBatchId m = receive.micro_batches->first;
  return kind_fits && action.pipeline == receive.pipeline && action.stage == receive.stage &&
         action.slice == receive.slice && action.micro_batches->first <= m &&
         m <= action.micro_batches->last;
}

// Runs all lists, one action per device and round, and writes them down anew.
class Rounds {
 public:
  explicit Rounds(const Schedule& completed)
      : receivers_(find_receiving_devices(completed)), next_(completed.devices.size()) {
    for (const std::vector<Action>& list : completed.devices) take_apart(list);
    arrived_.resize(completed.devices.size());
    written_.devices.resize(completed.devices.size());
  }

  Schedule run() {
    for (bool progress = true; progress; ++round_) {
      progress = false;
      for (std::size_t device = 0; device < lists_.size(); ++device) {
        progress = take_turn(device) || progress;
      }
    }
    refuse_waiting();
    return std::move(written_);
  }

 private:
  // An action that is no RECV, and the messages it must have received.
  struct Item {
    const Action* action = nullptr;
    std::vector<Message> needed;
  };

  void take_apart(const std::vector<Action>& list) {
    std::vector<const Action*> open;
    std::vector<Item>& items = lists_.emplace_back();
    for (const Action& action : list) {
      if (is_receive(action)) {
        receives_.emplace(message_of(action), &action);
        open.push_back(&action);
        continue;
      }
      Item item{&action, {}};
      if (is_compute(action.kind) && action.kind != ActionKind::kUpdate) {
        std::erase_if(open, [&](const Action* receive) {
          if (!needs(action, *receive)) return false;
          item.needed.push_back(message_of(*receive));
          return true;
        });
      }
      items.push_back(std::move(item));
    }
    ENSURE(open.empty(), "a RECV stands before the action that needs it");
  }

  void refuse_waiting() const {
    std::string waits;
    for (std::size_t device = 0; device < lists_.size(); ++device) {
      if (next_[device] == lists_[device].size()) continue;
      const Item& item = lists_[device][next_[device]];
      const auto missing =
          std::find_if(item.needed.begin(), item.needed.end(),
                       [&](const Message& message) { return !sent_in_.contains(message); });
      ENSURE(missing != item.needed.end(), "who waits lacks a message");
      waits += fmt::format("{}device {} stands at {} and waits for {}", waits.empty() ? "" : ", ",
                           device, to_text(*item.action), to_text(*receives_.at(*missing)));
    }
    if (waits.empty()) return;
    throw InfeasibleError("the lists of the devices wait for each other: " + waits);
  }

  // Runs one action of the device, and the SENDs behind it in the same turn; returns false if the
  // action lacks a message or the list is at its end.
  bool take_turn(std::size_t device) {
    const std::vector<Item>& items = lists_[device];
    std::size_t& next = next_[device];
    if (next == items.size() || !is_ready(items[next])) return false;
    do {
      write(device, items[next]);
      ++next;
    } while (next < items.size() && is_send(*items[next].action));
    return true;
  }

  bool is_ready(const Item& item) const {
    return std::all_of(item.needed.begin(), item.needed.end(), [&](const Message& message) {
      const auto sent = sent_in_.find(message);
      return sent != sent_in_.end() && sent->second < round_;
    });
  }

  void write(std::size_t device, const Item& item) {
    if (is_send(*item.action)) {
      while (!arrived_[device].empty()) receive_one(device);
      send(message_of(*item.action));
    } else {
      for (const Message& message : item.needed) receive_through(device, message);
    }
    written_.devices[device].push_back(*item.action);
  }

  void send(const Message& message) {
    const auto receiver = receivers_.find(message);
    ENSURE(receiver != receivers_.end(), "every SEND has its RECV");
    sent_in_.emplace(message, round_);
    arrived_[receiver->second].push_back(message);
  }

  void receive_through(std::size_t device, const Message& message) {
    const std::deque<Message>& arrived = arrived_[device];
    while (std::find(arrived.begin(), arrived.end(), message) != arrived.end()) receive_one(device);
  }

  void receive_one(std::size_t device) {
    written_.devices[device].push_back(*receives_.at(arrived_[device].front()));
    arrived_[device].pop_front();
  }

  MessageDevices receivers_;
  std::map<Message, const Action*> receives_;
  std::vector<std::vector<Item>> lists_;
  std::vector<std::size_t> next_;
  int round_ = 0;
  std::map<Message, int> sent_in_;
  std::vector<std::deque<Message>> arrived_;  // by device, in the order sent, not yet received
  Schedule written_;
};

}  // namespace

Schedule order_receives(const Schedule& completed) {
  Schedule ordered = Rounds(completed).run();
  ENSURE(!find_deadlock(ordered, MessageLowering::kJustInTime),
         "receives in the order of one run do not wait for each other");
  return ordered;
}

}  // namespace frazil
