#include "planner/answers/print_messages.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "planner/actions/deadlock.h"
#include "planner/schedules/make_schedule.h"

namespace frazil {
namespace {

constexpr std::array kLowerings = {MessageLowering::kEagerReceive, MessageLowering::kJustInTime,
                                   MessageLowering::kGrouped};

Schedule complete(const Plan& plan, Setting setting) {
  const Schedule compute =
      make_schedule(plan, static_cast<int>(setting.cluster().devices.size()), setting);
  return complete_schedule(compute, plan, setting.profile(),
                           find_activity(setting.profile(), plan.mask));
}

}  // namespace

std::string print_messages(const Plan& plan, Setting setting) {
  const Schedule completed = complete(plan, setting);
  std::string text;
  for (const MessageLowering lowering : kLowerings) {
    text += fmt::format("messages, {}: {}\n", message_lowering_name(lowering),
                        find_deadlock(completed, lowering).value_or("come through"));
  }
  return text;
}

std::string messages_json(const Plan& plan, Setting setting) {
  const Schedule completed = complete(plan, setting);
  nlohmann::ordered_json messages = nlohmann::ordered_json::object();
  for (const MessageLowering lowering : kLowerings) {
    const auto deadlock = find_deadlock(completed, lowering);
    messages[std::string(message_lowering_name(lowering))] =
        deadlock ? nlohmann::ordered_json(*deadlock) : nlohmann::ordered_json(nullptr);
  }
  return nlohmann::ordered_json{{"messages", messages}}.dump();
}

}  // namespace frazil
