#include "tests/planner/interop/chakra_replay.h"

#include <algorithm>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>

#include "tests/support/protobuf_fields.h"

namespace frazil {
namespace {

[[noreturn]] void complain(const std::string& text) { throw std::runtime_error(text); }

// Returns, by attribute, the field number of AttributeProto in which readers look for its value.
const std::map<std::string, std::uint64_t>& attribute_members() {
  static const std::map<std::string, std::uint64_t> members = {
      {"is_cpu_op", 27}, {"comm_src", 7},  {"comm_dst", 7},    {"comm_tag", 7},
      {"comm_size", 9},  {"comm_type", 9}, {"duration_ns", 9}, {"pg_name", 29}};
  return members;
}

void read_attribute(std::string_view message, ChakraFileNode& node) {
  const std::vector<ProtobufField> fields = read_fields(message);
  if (fields.size() != 2 || fields[0].number != 1 || fields[0].wire_type != 2) {
    complain("an attribute that is not a name and a value");
  }
  const std::string name(fields[0].bytes);
  const auto member = attribute_members().find(name);
  if (member == attribute_members().end()) complain("an unknown attribute " + name);
  if (fields[1].number != member->second) complain("another member of the value of " + name);
  const bool is_text = name == "pg_name";
  if (fields[1].wire_type != (is_text ? 2U : 0U)) complain("another wire type of " + name);
  if (is_text) {
    node.group = fields[1].bytes;
  } else if (!node.numbers.emplace(name, static_cast<std::int64_t>(fields[1].value)).second) {
    complain(name + " twice");
  }
}

void check_attributes(const ChakraFileNode& node) {
  std::set<std::string> expected = {"is_cpu_op", "duration_ns"};
  switch (node.type) {
    case ChakraFileNodeType::kCompute:
      break;
    case ChakraFileNodeType::kSend:
    case ChakraFileNodeType::kReceive:
      expected.insert({"comm_src", "comm_dst", "comm_tag", "comm_size"});
      break;
    case ChakraFileNodeType::kCollective:
      expected.insert({"comm_type", "comm_size"});
      break;
    default:
      complain("an unknown type of node");
  }
  std::set<std::string> found;
  for (const auto& [name, number] : node.numbers) found.insert(name);
  if (found != expected) complain(node.name + " with other attributes than its type has");
  const bool is_compute = node.type == ChakraFileNodeType::kCompute;
  if (!is_compute && node.number("is_cpu_op") != 0) complain(node.name + " on the host");
  if (!is_compute && node.number("comm_size") < 1) complain(node.name + " of no bytes");
}

ChakraFileNode read_node(std::string_view message) {
  const std::map<std::uint64_t, std::uint64_t> wire_types = {{1, 0}, {2, 2}, {3, 0}, {5, 2},
                                                             {6, 0}, {7, 0}, {10, 2}};
  ChakraFileNode node;
  for (const ProtobufField& field : read_fields(message)) {
    const auto type = wire_types.find(field.number);
    if (type == wire_types.end()) complain("an unknown field of a node");
    if (type->second != field.wire_type) complain("a field of another wire type");
    if (field.number == 1) node.id = field.value;
    if (field.number == 2) node.name = field.bytes;
    if (field.number == 3) node.type = static_cast<ChakraFileNodeType>(field.value);
    for (std::string_view deps = field.bytes; field.number == 5 && !deps.empty();) {
      node.data_deps.push_back(take_varint(deps));
    }
    if (field.number == 6) node.start_micros = static_cast<std::int64_t>(field.value);
    if (field.number == 7) node.duration_micros = static_cast<std::int64_t>(field.value);
    if (field.number == 10) read_attribute(field.bytes, node);
  }
  check_attributes(node);
  return node;
}

class Replaying {
 public:
  Replaying(const std::vector<std::vector<ChakraFileNode>>& devices, const ReplayLinks& links,
            const std::map<std::string, std::vector<int>>& groups)
      : files_(devices), links_(links), groups_(groups), devices_(devices.size()) {
    answer_.start_ns.resize(devices.size());
    for (std::size_t d = 0; d < devices.size(); ++d) {
      for (const ChakraFileNode& node : devices[d]) {
        devices_[d].waits[node.id] = node.data_deps.size();
        for (const std::uint64_t on : node.data_deps) devices_[d].children[on].push_back(node.id);
        if (node.data_deps.empty()) devices_[d].free.insert(node.id);
      }
    }
  }

  Replay run() {
    for (std::size_t d = 0; d < devices_.size(); ++d) issue_free(d);
    while (!events_.empty()) {
      const auto [time, order, device, id, is_arrival] = events_.top();
      events_.pop();
      now_ = time;
      if (is_arrival) {
        arrive(device, id);
      } else {
        finish(device, id);
      }
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].finished != files_[d].size()) complain("nodes that wait for ever");
    }
    return answer_;
  }

 private:
  enum Place { kHost, kCompute, kLink, kCollectives, kNowhere };
  using Event = std::tuple<std::int64_t, std::int64_t, std::size_t, std::uint64_t, bool>;
  using Meeting = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // source, target, tag

  struct Device {
    std::map<std::uint64_t, std::size_t> waits;
    std::map<std::uint64_t, std::vector<std::uint64_t>> children;
    std::set<std::uint64_t> free;
    std::map<int, bool> busy;  // by place
    std::map<std::string, std::size_t> entered;
    std::size_t finished = 0;
  };
  struct Mail {
    std::int64_t sent = 0;     // bytes
    std::int64_t awaited = 0;  // bytes
    bool has_arrived = false;
    bool is_posted = false;
    std::size_t device = 0;     // of the RECV
    std::uint64_t receive = 0;  // its id
  };

  // Ids are positions in the file, which the reader has checked.
  const ChakraFileNode& node(std::size_t device, std::uint64_t id) const {
    return files_[device][id];
  }

  Place place_of(const ChakraFileNode& node) const {
    switch (node.type) {
      case ChakraFileNodeType::kCompute:
        return node.number("is_cpu_op") != 0 ? kHost : kCompute;
      case ChakraFileNodeType::kSend:
        return kLink;
      case ChakraFileNodeType::kCollective:
        return links_.holds_until_arrival ? kLink : kCollectives;
      case ChakraFileNodeType::kReceive:
        break;
    }
    return kNowhere;
  }

  void schedule(std::int64_t time, std::size_t device, std::uint64_t id, bool is_arrival = false) {
    events_.emplace(time, order_++, device, id, is_arrival);
  }

  void issue_free(std::size_t device) {
    const std::set<std::uint64_t> candidates = devices_[device].free;
    for (const std::uint64_t id : candidates) {
      const Place place = place_of(node(device, id));
      if (place != kNowhere && devices_[device].busy[place]) continue;
      if (place != kNowhere) devices_[device].busy[place] = true;
      devices_[device].free.erase(id);
      issue(device, id);
    }
  }

  void issue(std::size_t device, std::uint64_t id) {
    const ChakraFileNode& issued = node(device, id);
    switch (issued.type) {
      case ChakraFileNodeType::kCompute:
        answer_.start_ns[device][issued.name].push_back(now_);
        schedule(now_ + issued.duration_micros * 1000, device, id);
        break;
      case ChakraFileNodeType::kSend:
        send(device, id, issued);
        break;
      case ChakraFileNodeType::kReceive:
        receive(device, id, issued);
        break;
      case ChakraFileNodeType::kCollective:
        enter(device, id, issued);
        break;
    }
  }

  static Meeting meeting_of(const ChakraFileNode& node) {
    return {node.number("comm_src"), node.number("comm_dst"), node.number("comm_tag")};
  }

  void send(std::size_t device, std::uint64_t id, const ChakraFileNode& node) {
    if (node.number("comm_src") != static_cast<std::int64_t>(device)) complain("a foreign SEND");
    const std::int64_t size = node.number("comm_size");
    const std::int64_t rate = links_.bytes_per_second;
    __extension__ using Wide = __int128;
    const auto on_link =
        static_cast<std::int64_t>(rate == 0 ? 0 : (Wide{size} * 1'000'000'000 + rate - 1) / rate);
    Mail& mail = mail_[meeting_of(node)];
    if (mail.sent != 0) complain("two messages of one tag");
    mail.sent = size;
    const std::int64_t arrival = now_ + on_link + links_.latency_ns;
    schedule(arrival, device, id, true);
    schedule(links_.holds_until_arrival ? arrival : now_ + on_link, device, id);
  }

  void receive(std::size_t device, std::uint64_t id, const ChakraFileNode& node) {
    if (node.number("comm_dst") != static_cast<std::int64_t>(device)) complain("a foreign RECV");
    Mail& mail = mail_[meeting_of(node)];
    if (mail.is_posted) complain("two RECVs of one tag");
    mail.is_posted = true;
    mail.awaited = node.number("comm_size");
    mail.device = device;
    mail.receive = id;
    if (mail.has_arrived) deliver(mail);
  }

  void arrive(std::size_t device, std::uint64_t id) {
    Mail& mail = mail_[meeting_of(node(device, id))];
    mail.has_arrived = true;
    if (mail.is_posted) deliver(mail);
  }

  void deliver(const Mail& mail) {
    if (mail.sent != mail.awaited) complain("a message whose sides differ in size");
    schedule(now_, mail.device, mail.receive);
  }

  // The n-th collective of a group is the same one on all its ranks.
  void enter(std::size_t device, std::uint64_t id, const ChakraFileNode& node) {
    std::vector<int> ranks;
    if (!node.group.empty()) {
      ranks = groups_.at(node.group);
    } else {
      for (std::size_t d = 0; d < devices_.size(); ++d) ranks.push_back(static_cast<int>(d));
    }
    if (std::find(ranks.begin(), ranks.end(), static_cast<int>(device)) == ranks.end()) {
      complain("a collective of a group that the device is not in");
    }
    auto& inside = meetings_[{node.group, devices_[device].entered[node.group]++}];
    inside.emplace_back(device, id);
    if (inside.size() < ranks.size()) return;
    for (const auto& [member, of_member] : inside) {
      schedule(now_ + this->node(member, of_member).number("duration_ns"), member, of_member);
    }
  }

  void finish(std::size_t device, std::uint64_t id) {
    Device& of = devices_[device];
    ++of.finished;
    answer_.makespan_ns = std::max(answer_.makespan_ns, now_);
    if (const Place place = place_of(node(device, id)); place != kNowhere) of.busy[place] = false;
    for (const std::uint64_t child : of.children[id]) {
      if (--of.waits[child] == 0) of.free.insert(child);
    }
    issue_free(device);
  }

  const std::vector<std::vector<ChakraFileNode>>& files_;
  ReplayLinks links_;
  const std::map<std::string, std::vector<int>>& groups_;
  std::vector<Device> devices_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<Meeting, Mail> mail_;
  std::map<std::pair<std::string, std::size_t>, std::vector<std::pair<std::size_t, std::uint64_t>>>
      meetings_;
  std::int64_t now_ = 0;
  std::int64_t order_ = 0;
  Replay answer_;
};

}  // namespace

std::vector<ChakraFileNode> read_chakra_file(std::string_view file) {
  const std::vector<std::string_view> messages = read_stream(file);
  if (messages.empty()) complain("a file without metadata");
  const std::vector<ProtobufField> metadata = read_fields(messages[0]);
  if (metadata.size() != 1 || metadata[0].number != 1 || metadata[0].bytes != "0.0.4") {
    complain("metadata of another version");
  }
  std::vector<ChakraFileNode> nodes;
  for (std::size_t i = 1; i < messages.size(); ++i) {
    nodes.push_back(read_node(messages[i]));
    const ChakraFileNode& node = nodes.back();
    if (node.id != i - 1) complain("ids that do not count");
    if (std::set(node.data_deps.begin(), node.data_deps.end()).size() != node.data_deps.size()) {
      complain("a dependency twice");
    }
    for (const std::uint64_t on : node.data_deps) {
      if (on >= node.id) complain("a node before what it waits for");
    }
  }
  if (nodes.empty()) complain("a file without nodes");
  return nodes;
}

Replay replay_chakra(const std::vector<std::vector<ChakraFileNode>>& devices,
                     const ReplayLinks& links,
                     const std::map<std::string, std::vector<int>>& groups) {
  return Replaying(devices, links, groups).run();
}

}  // namespace frazil
