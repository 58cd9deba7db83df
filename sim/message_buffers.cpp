#include "sim/message_buffers.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

namespace frazil {

MessageRoutes find_message_routes(const TaskGraph& graph) {
  MessageRoutes routes;
  routes.receiver.assign(graph.size(), kNoTask);
  routes.channel.assign(graph.size(), 0);
  std::map<std::pair<DeviceId, DeviceId>, std::uint32_t> channels;
  for (const Dependency& dependency : graph.dependencies()) {
    const Work& work = graph.works()[graph.work_of()[dependency.on]];
    const auto* const transfer = std::get_if<Transfer>(&work);
    const DeviceId at = graph.lanes()[graph.lane_of()[dependency.task]].device;
    if (transfer == nullptr || transfer->to != at) continue;
    TaskId& receiver = routes.receiver[dependency.on];
    receiver = std::min(receiver, dependency.task);
    const auto next = static_cast<std::uint32_t>(channels.size());
    routes.channel[dependency.on] =
        channels.try_emplace({transfer->from, transfer->to}, next).first->second;
  }
  routes.channels = channels.size();
  return routes;
}

MessageBuffers::MessageBuffers(const MessageRoutes& routes, int buffers)
    : routes_(routes), buffers_(buffers), used_(routes.channels), held_(routes.receiver.size()) {}

void MessageBuffers::take(TaskId message) {
  ++used_[routes_.channel[message]];
  held_[message] = true;
}

bool MessageBuffers::give_back(TaskId message) {
  if (!held_[message]) return false;
  held_[message] = false;
  --used_[routes_.channel[message]];
  return true;
}

}  // namespace frazil
