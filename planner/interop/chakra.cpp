#include "planner/interop/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "planner/prediction/step_messages.h"
#include "profiles/error.h"
#include "sim/static_engine.h"
#include "traces/chakra_trace.h"

namespace frazil {
namespace {

[[noreturn]] void refuse(const Action& action, const std::string& why) {
  throw InfeasibleError(to_text(action) + " " + why + ", which a Chakra trace cannot say");
}

// Adds up times and returns each as whole microseconds: differences of the rounded total.
class RunningMicroseconds {
 public:
  std::int64_t add(Duration time) {
    const std::int64_t before = nearest_microsecond(total_);
    total_ += time;
    return nearest_microsecond(total_) - before;
  }

 private:
  Duration total_{0};
};

// The groups of devices over which collectives run, except all devices together: numbered from 1,
// in the order of their members.
class Groups {
 public:
  Groups(const TaskGraph& graph, std::size_t devices) {
    for (const Work& work : graph.works()) {
      const auto* collective = std::get_if<Collective>(&work);
      if (collective != nullptr && collective->devices.size() < devices) {
        numbers_[collective->devices] = 0;
      }
    }
    int last = 0;
    for (auto& [members, number] : numbers_) number = ++last;
  }

  std::string name(const std::vector<DeviceId>& members) const {
    const auto known = numbers_.find(members);
    return known == numbers_.end() ? "" : fmt::format("{}", known->second);
  }

  std::string to_json() const {
    if (numbers_.empty()) return "";
    std::vector<std::string> lines;
    for (const auto& [members, number] : numbers_) {
      std::vector<int> ranks;
      for (const DeviceId member : members) ranks.push_back(member.value);
      lines.push_back(fmt::format("  \"{}\": [{}]", number, fmt::join(ranks, ", ")));
    }
    return fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
  }

 private:
  std::map<std::vector<DeviceId>, int> numbers_;
};

// Exports tasks in the order of the sweep, so the nodes for which a node waits already have ids.
class ChakraExport {
 public:
  ChakraExport(const SimulatedStep& step, std::vector<StepMessage> messages, const Cluster& cluster)
      : lowered_(step.lowered),
        simulation_(step.simulation),
        cluster_(cluster),
        messages_(std::move(messages)),
        sweep_(compile(lowered_.graph)),
        groups_(lowered_.graph, cluster.devices.size()),
        leaving_(lowered_.graph.size()),
        arriving_(lowered_.graph.size()),
        node_of_(lowered_.graph.size()),
        lanes_(lowered_.graph.lanes().size()),
        files_(cluster.devices.size()) {
    ENSURE(messages_.size() <= std::numeric_limits<std::int32_t>::max(), "more messages than tags");
    for (std::size_t tag = 0; tag < messages_.size(); ++tag) {
      const StepMessage& message = messages_[tag];
      leaving_[leaves_after(message)].push_back(tag);
      arriving_[message.consumer].push_back(tag);
    }
    check_messages();
  }

  ChakraTraces run() {
    for (DeviceFile& file : files_) append_chakra_metadata(file.text);
    for (std::uint32_t at = 0; at < sweep_.task_at.size(); ++at) add_task(at);
    ChakraTraces traces;
    for (DeviceFile& file : files_) {
      if (file.nodes == 0) add_node(file, {.name = "idle"});
      traces.files.push_back(std::move(file.text));
    }
    traces.groups = groups_.to_json();
    return traces;
  }

 private:
  struct DeviceFile {
    std::string text;
    std::uint64_t nodes = 0;
  };
  struct LaneState {
    std::optional<std::uint64_t> last;
    RunningMicroseconds microseconds;
  };

  static TaskId leaves_after(const StepMessage& message) {
    return message.send == kNoTask ? message.producer : message.send;
  }

  // Checks that the boundaries of the plan and the delays of the graph list the same messages.
  // Where several tasks await one message (pieces of a backward), the first receives it, and the
  // others come after the first on its lane.
  void check_messages() const {
    std::vector<bool> is_awaited(messages_.size());
    for (const Dependency& wait : lowered_.graph.dependencies()) {
      if (wait.delay == kNoWork) continue;
      if (is_entry(wait.task)) refuse(lowered_.actions[wait.task], "waits for pieces of gradients");
      bool is_sent = false;
      for (const std::size_t tag : leaving_[wait.on]) {
        const TaskId first = messages_[tag].consumer;
        if (first == wait.task) is_awaited[tag] = true;
        is_sent = is_sent || (first <= wait.task && lane_index(first) == lane_index(wait.task));
      }
      ENSURE(is_sent, "a message that is not of the plan");
    }
    ENSURE(std::find(is_awaited.begin(), is_awaited.end(), false) == is_awaited.end(),
           "a message that nobody awaits");
  }

  LaneId lane_index(TaskId task) const { return lowered_.graph.lane_of()[task]; }
  const TaskLane& lane_of(TaskId task) const { return lowered_.graph.lanes()[lane_index(task)]; }

  // Tells whether the task is the entry where the owners of a reduction meet. It becomes no node,
  // as COMM_COLL nodes meet by themselves.
  bool is_entry(TaskId task) const {
    return lane_of(task).lane == Lane::kHost &&
           lowered_.actions[task].kind == ActionKind::kReduceGradients;
  }

  std::uint64_t add_node(DeviceFile& file, ChakraNode node) {
    node.id = file.nodes++;
    std::sort(node.data_deps.begin(), node.data_deps.end());
    node.data_deps.erase(std::unique(node.data_deps.begin(), node.data_deps.end()),
                         node.data_deps.end());
    append_chakra_node(file.text, node);
    return node.id;
  }

  void add_task(std::uint32_t at) {
    const TaskId task = sweep_.task_at[at];
    if (is_entry(task)) return;
    DeviceFile& file = files_[lane_of(task).device.index()];
    LaneState& lane = lanes_[lane_index(task)];
    ChakraNode node;
    node.name = name_of(task);
    node.start = simulation_.start[task];
    node.duration = simulation_.end[task] - simulation_.start[task];
    node.duration_micros = lane.microseconds.add(node.duration);
    node.work = describe(task);
    node.data_deps = waits_inside(at, lane_of(task).device);
    if (lane.last) node.data_deps.push_back(*lane.last);
    for (const std::size_t tag : arriving_[task]) node.data_deps.push_back(add_receive(file, tag));
    node_of_[task] = add_node(file, std::move(node));
    lane.last = node_of_[task];
    if (lane_of(task).lane == Lane::kSend) return;
    for (const std::size_t tag : leaving_[task]) add_send(file, tag, node_of_[task]);
  }

  std::string name_of(TaskId task) const {
    const bool is_overhead =
        lane_of(task).lane == Lane::kHost && simulation_.end[task] > simulation_.start[task];
    return is_overhead ? "step_overhead" : to_text(lowered_.actions[task]);
  }

  std::variant<ChakraCompute, ChakraMessage, ChakraCollective> describe(TaskId task) const {
    const Work& work = lowered_.graph.works()[lowered_.graph.work_of()[task]];
    if (const auto* collective = std::get_if<Collective>(&work)) {
      return ChakraCollective{.kind = kind_of(collective->kind),
                              .size = std::max(collective->size, Bytes{1}),
                              .group = groups_.name(collective->devices)};
    }
    if (std::holds_alternative<Transfer>(work)) {
      return describe(ChakraMessage::Side::kSend, leaving_[task].front());
    }
    return ChakraCompute{.is_cpu_op = lane_of(task).lane == Lane::kHost};
  }

  static ChakraCollective::Kind kind_of(CollectiveKind kind) {
    switch (kind) {
      case CollectiveKind::kRingAllReduce:
      case CollectiveKind::kTreeAllReduce:
      case CollectiveKind::kExactTreeAllReduce:
        return ChakraCollective::Kind::kAllReduce;
      case CollectiveKind::kAllGather:
        return ChakraCollective::Kind::kAllGather;
    }
    fail_ensure(__FILE__, __LINE__, "an unknown collective");
  }

  ChakraMessage describe(ChakraMessage::Side side, std::size_t tag) const {
    const StepMessage& message = messages_[tag];
    return {.side = side,
            .from = message.from,
            .to = message.to,
            .tag = static_cast<std::int32_t>(tag),
            .size = std::max(message.size, Bytes{1})};
  }

  std::uint64_t add_receive(DeviceFile& file, std::size_t tag) {
    const StepMessage& message = messages_[tag];
    const Duration latency = cluster_.link(message.from, message.to).latency;
    ChakraNode node;
    node.name = to_text(receive_of(message.message));
    node.start = simulation_.end[leaves_after(message)];
    node.duration = latency;
    node.duration_micros = nearest_microsecond(latency);
    node.work = describe(ChakraMessage::Side::kReceive, tag);
    return add_node(file, std::move(node));
  }

  void add_send(DeviceFile& file, std::size_t tag, std::uint64_t producer) {
    const StepMessage& message = messages_[tag];
    ChakraNode node;
    node.name = to_text(send_of(message.message));
    node.data_deps = {producer};
    node.start = simulation_.end[message.producer];
    node.work = describe(ChakraMessage::Side::kSend, tag);
    add_node(file, std::move(node));
  }

  // Lists the nodes of this device for which a task waits, without messages. A wait for the entry
  // of a reduction stands for the waits of that entry on this device.
  std::vector<std::uint64_t> waits_inside(std::uint32_t at, DeviceId device) const {
    std::vector<std::uint64_t> nodes;
    for (std::uint32_t i = sweep_.first_incoming[at]; i < sweep_.first_incoming[at + 1]; ++i) {
      const CompiledGraph::Incoming& wait = sweep_.incoming[i];
      const TaskId on = sweep_.task_at[wait.on];
      if (wait.delay != sweep_.works) continue;
      if (is_entry(on)) {
        add_waits_of_entry(wait.on, device, nodes);
      } else if (lane_of(on).device == device) {
        nodes.push_back(node_of_[on]);
      } else {
        refuse(lowered_.actions[sweep_.task_at[at]], "waits for another device without a message");
      }
    }
    return nodes;
  }

  void add_waits_of_entry(std::uint32_t entry, DeviceId device,
                          std::vector<std::uint64_t>& nodes) const {
    for (std::uint32_t i = sweep_.first_incoming[entry]; i < sweep_.first_incoming[entry + 1];
         ++i) {
      const TaskId on = sweep_.task_at[sweep_.incoming[i].on];
      if (lane_of(on).device == device) nodes.push_back(node_of_[on]);
    }
  }

  const LoweredStep& lowered_;
  const Simulation& simulation_;
  const Cluster& cluster_;
  std::vector<StepMessage> messages_;  // by tag
  CompiledGraph sweep_;
  Groups groups_;
  std::vector<std::vector<std::size_t>> leaving_;   // tags, by the task after which they leave
  std::vector<std::vector<std::size_t>> arriving_;  // tags, by the task that awaits them
  std::vector<std::uint64_t> node_of_;              // by task
  std::vector<LaneState> lanes_;                    // by lane
  std::vector<DeviceFile> files_;                   // by device
};

}  // namespace

ChakraTraces to_chakra(const SimulatedStep& step, const Plan& plan, Setting setting) {
  const Activity activity = find_activity(setting.profile(), plan.mask);
  return ChakraExport(step, find_step_messages(step.lowered, plan, setting.profile(), activity),
                      setting.cluster())
      .run();
}

}  // namespace frazil
