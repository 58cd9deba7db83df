#pragma once
// The events of the messages on their way between the GPUs of one process: each stands for the
// point from which the receiver may read. A message carries tensors alone, so its event waits here,
// by its name.

#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "exec/devices/device_event.h"
#include "exec/links/message_tag.h"

namespace frazil {

// Any thread may use it.
class MessageEvents {
 public:
  explicit MessageEvents(std::set<int> ranks) : ranks_(std::move(ranks)) {}

  // True if the rank is one of this process, whose messages have events.
  bool has(int rank) const { return ranks_.contains(rank); }
  // Called before the message is sent, and after it is received.
  void post(int from, int to, const Tag& tag, DeviceEvent event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.insert_or_assign({from, to, tag}, std::move(event));
  }
  DeviceEvent take(int from, int to, const Tag& tag) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = events_.find({from, to, tag});
    if (found == events_.end()) return {};
    DeviceEvent event = std::move(found->second);
    events_.erase(found);
    return event;
  }

 private:
  std::set<int> ranks_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, Tag>, DeviceEvent> events_;
};

}  // namespace frazil
