#pragma once
// The event engine's queue: a heap of events by time. Nodes have four children, so that a queue as
// long as a pipeline has lanes is two or three comparisons deep and lies in a few cache lines.
// Events of equal time come out in no promised order: the engine takes all events of a time before
// it acts.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/task_graph.h"

namespace frazil {

struct Event {
  std::int64_t time = 0;  // ns
  TaskId task = 0;
  std::uint32_t what = 0;  // the event's meaning, left to the user of the queue
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  // Requires: not empty.
  std::int64_t next_time() const { return heap_.front().time; }

  void push(const Event& event) {
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (heap_[parent].time <= event.time) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  // Removes and returns an event of the earliest time. Requires: not empty.
  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return first;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = kChildren * hole + 1) {
      std::size_t least = child;
      const std::size_t end = std::min(child + kChildren, size);
      for (std::size_t other = child + 1; other < end; ++other) {
        least = heap_[other].time < heap_[least].time ? other : least;
      }
      if (event.time <= heap_[least].time) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = event;
  }

  std::vector<Event> heap_;
};

}  // namespace frazil
