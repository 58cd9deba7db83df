#pragma once
// A device event is a point in the work of a stream of a GPU. Other streams order their work by it,
// and the host asks whether it has been reached. Where the host waits for its devices, and on
// cores, there are none: an empty event stands for a point that has passed.

#include <memory>

#include "exec/devices/accelerator.h"

namespace frazil {

// A handle: copies name the same point. Any thread may hold one.
class DeviceEvent {
 public:
  DeviceEvent() = default;
  // Takes over an event of the plug-in with this table.
  DeviceEvent(const AcceleratorTable& table, EventHandle event)
      : event_(event, table.drop), table_(&table) {}

  explicit operator bool() const { return event_ != nullptr; }
  EventHandle handle() const { return event_.get(); }

  // Returns true if the point has been reached; never waits. Throws the GPU's error.
  bool has_passed() const { return event_ == nullptr || table_->has_passed(event_.get()); }
  // Returns the time from another event to this one, in ns. Requires: both are timed, of one GPU,
  // and have passed.
  std::int64_t time_since(const DeviceEvent& first) const {
    return table_->time_between(first.handle(), handle());
  }

 private:
  std::shared_ptr<void> event_;
  const AcceleratorTable* table_ = nullptr;
};

}  // namespace frazil
