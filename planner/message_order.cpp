#include "planner/message_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

bool is_send(const Action& action) {
  return action.kind == ActionKind::kSendForward || action.kind == ActionKind::kSendBackward;
}

bool is_receive(const Action& action) {
  return action.kind == ActionKind::kReceiveForward || action.kind == ActionKind::kReceiveBackward;
}

bool is_backward(const Action& message) {
  return message.kind == ActionKind::kSendBackward || message.kind == ActionKind::kReceiveBackward;
}

struct Message {
  PipelineId pipeline;
  StageId from;
  StageId to;
  bool backward = false;
  MicroBatchId micro_batch;
  std::optional<std::int32_t> slice;
  friend auto operator<=>(const Message&, const Message&) = default;
};

Message message_of(const Action& action) {
  const bool downstream = is_send(action) != is_backward(action);
  const StageId neighbour{action.stage.value + (downstream ? 1 : -1)};
  const StageId peer = action.peer.value_or(neighbour);
  return {.pipeline = action.pipeline,
          .from = is_send(action) ? action.stage : peer,
          .to = is_send(action) ? peer : action.stage,
          .backward = is_backward(action),
          .micro_batch = action.micro_batches->first,
          .slice = action.slice};
}

// The device that receives each message.
using Receivers = std::map<Message, std::size_t>;

Receivers find_receivers(const Schedule& schedule) {
  Receivers receivers;
  for (std::size_t device = 0; device < schedule.devices.size(); ++device) {
    for (const Action& action : schedule.devices[device]) {
      if (is_receive(action)) receivers.emplace(message_of(action), device);
    }
  }
  return receivers;
}

bool needs(const Action& action, const Action& receive) {
  if (const auto* pair = std::get_if<ActionPair>(&action.detail)) {
    return std::any_of(pair->halves.begin(), pair->halves.end(),
                       [&](const Action& half) { return needs(half, receive); });
  }
  const bool kind_fits = is_backward(receive) ? action.kind == ActionKind::kBackward ||
                                                    action.kind == ActionKind::kBackwardInput ||
                                                    action.kind == ActionKind::kBackwardWeight
                                              : action.kind == ActionKind::kForward;
  const MicroBatchId m = receive.micro_batches->first;
  return kind_fits && action.pipeline == receive.pipeline && action.stage == receive.stage &&
         action.slice == receive.slice && action.micro_batches->first <= m &&
         m <= action.micro_batches->last;
}

// One run of all lists, one action per device and round, that writes them down anew.
class Rounds {
 public:
  explicit Rounds(const Schedule& completed)
      : receivers_(find_receivers(completed)), next_(completed.devices.size()) {
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
    for (std::size_t device = 0; device < lists_.size(); ++device) {
      if (next_[device] == lists_[device].size()) continue;
      throw InfeasibleError(
          fmt::format("the lists of the devices wait for each other: {} on device {} never gets "
                      "what it needs",
                      to_text(*lists_[device][next_[device]].action), device));
    }
    return std::move(written_);
  }

 private:
  // An action that is no RECV, and what it must have received.
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

  // A SEND belongs to the turn of what comes before it.
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

  Receivers receivers_;
  std::map<Message, const Action*> receives_;
  std::vector<std::vector<Item>> lists_;
  std::vector<std::size_t> next_;
  int round_ = 0;
  std::map<Message, int> sent_in_;
  std::vector<std::deque<Message>> arrived_;  // by device, in the order sent, not yet received
  Schedule written_;
};

class Lockstep {
 public:
  explicit Lockstep(const Schedule& completed)
      : schedule_(completed),
        receivers_(find_receivers(completed)),
        next_(completed.devices.size()) {}

  bool run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t device = 0; device < next_.size(); ++device) {
        while (hand_over(device)) progress = true;
      }
    }
    for (std::size_t device = 0; device < next_.size(); ++device) {
      if (next_message(device) != nullptr) return false;
    }
    return true;
  }

 private:
  // None at the end of the list.
  const Action* next_message(std::size_t device) {
    const std::vector<Action>& list = schedule_.devices[device];
    std::size_t& at = next_[device];
    while (at < list.size() && !is_send(list[at]) && !is_receive(list[at])) ++at;
    return at < list.size() ? &list[at] : nullptr;
  }

  // The SEND that a device has reached meets its RECV if the other device has reached that.
  bool hand_over(std::size_t device) {
    const Action* send = next_message(device);
    if (send == nullptr || !is_send(*send)) return false;
    const auto receiver = receivers_.find(message_of(*send));
    if (receiver == receivers_.end()) return false;
    const Action* receive = next_message(receiver->second);
    if (receive == nullptr || !is_receive(*receive)) return false;
    if (message_of(*receive) != message_of(*send)) return false;
    ++next_[device];
    ++next_[receiver->second];
    return true;
  }

  const Schedule& schedule_;
  Receivers receivers_;
  std::vector<std::size_t> next_;
};

}  // namespace

bool runs_in_lockstep(const Schedule& completed) { return Lockstep(completed).run(); }

Schedule order_receives(const Schedule& completed) {
  Schedule ordered = Rounds(completed).run();
  ENSURE(runs_in_lockstep(ordered), "receives in the order of one run do not wait for each other");
  return ordered;
}

}  // namespace frazil
