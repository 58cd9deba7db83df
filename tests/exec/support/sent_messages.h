#pragma once
// What devices send each other in a step, counted where it is sent.

#include <cstdint>
#include <ostream>
#include <set>
#include <vector>

#include "exec/links/message_tag.h"
#include "exec/program/step_program.h"
#include "tests/exec/models/test_models.h"

namespace frazil {

struct Sent {
  int to = 0;
  Tag tag;
  std::int64_t bytes = 0;
};

using AllSent = std::vector<std::vector<Sent>>;  // by rank

// Returns what one step from the model's start values sends over `devices`.
AllSent send_step(const TestModel& model, const StepProgram& program, int devices, bool clip);

// Messages that a device sends, and their bytes.
struct Traffic {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;

  Traffic& operator+=(const Traffic& more) {
    messages += more.messages;
    bytes += more.bytes;
    return *this;
  }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

void PrintTo(const Traffic& traffic, std::ostream* out);

using DeviceTraffic = std::vector<Traffic>;  // by device

DeviceTraffic count_kinds(const AllSent& sent, const std::set<MessageKind>& kinds);
// Returns what all devices send to reduce gradients.
Traffic count_reductions(const AllSent& sent);

}  // namespace frazil
