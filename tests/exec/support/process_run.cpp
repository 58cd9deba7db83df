#include "tests/exec/support/process_run.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "exec/communication/process_communicator.h"
#include "exec/control/control_member.h"
#include "exec/links/socket.h"
#include "exec/run/jobs/job_codec.h"
#include "exec/run/jobs/serve_pool.h"
#include "exec/train/processes/gloo_world.h"
#include "exec/train/processes/run_world.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Differs from call to call, the same way in every process of the test program.
ProcessShape next_shape(int devices) {
  static std::atomic<unsigned> calls{0};
  const unsigned call = calls++;
  const int processes = call % 2 == 0 ? devices : std::min(devices, 2);
  return {spread_devices(devices, processes),
          call % 3 == 2 ? ProcessLinks::kTcp : ProcessLinks::kUnix,
          {}};
}

std::array<Descriptor, 2> connect_by_tcp(const Descriptor& listener) {
  constexpr Duration kLimit = std::chrono::seconds(20);
  Descriptor here = connect_to(address_of(listener), {}, kLimit);
  return {std::move(here), accept_from(listener, kLimit)};
}

std::vector<std::vector<PeerSockets>> make_tcp_mesh(int processes) {
  const Descriptor listener = listen_at({});
  const auto count = static_cast<std::size_t>(processes);
  std::vector<std::vector<PeerSockets>> mesh(count);
  for (auto& own : mesh) own.resize(count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) {
      for (Descriptor PeerSockets::*const socket : {&PeerSockets::steps, &PeerSockets::bulk}) {
        std::array<Descriptor, 2> ends = connect_by_tcp(listener);
        mesh[a][b].*socket = std::move(ends[0]);
        mesh[b][a].*socket = std::move(ends[1]);
      }
    }
  }
  return mesh;
}

std::vector<std::vector<PeerSockets>> connect_all(int processes, ProcessLinks links) {
  if (links == ProcessLinks::kGloo) {
    return std::vector<std::vector<PeerSockets>>(static_cast<std::size_t>(processes));
  }
  return links == ProcessLinks::kTcp ? make_tcp_mesh(processes) : make_socket_pairs(processes);
}

void name_again(const Descriptor& socket, std::vector<Descriptor>& names) {
  if (socket.is_open()) names.emplace_back(::dup(socket.number()));
}

void name_again(const std::vector<PeerSockets>& peers, std::vector<Descriptor>& names) {
  for (const PeerSockets& sockets : peers) {
    name_again(sockets.steps, names);
    name_again(sockets.bulk, names);
  }
}

// A killed process says nothing more. So all sockets are first shut for what it writes: else it
// would see one of them end, and tell others of that over the next.
void shut(const std::vector<Descriptor>& sockets) {
  for (const int direction : {SHUT_WR, SHUT_RDWR}) {
    for (const Descriptor& socket : sockets) (void)::shutdown(socket.number(), direction);
  }
}

}  // namespace

LeftState state_of(const DevicePool& pool) {
  LeftState left{.holdings = pool.holdings(), .plan = {}, .updates = {}};
  if (pool.has_plan()) left.plan = pool.program().plan;
  for (std::size_t d = 0; d < pool.states().size(); ++d) {
    const DeviceId device{pool.place().first.index() + d};
    for (std::size_t l = 0; l < left.holdings.size(); ++l) {
      const std::vector<DeviceId>& holders = left.holdings[l];
      const bool holds = std::find(holders.begin(), holders.end(), device) != holders.end();
      left.is_sound = left.is_sound && holds == pool.states()[d].contains(LayerId{l});
    }
    for (const auto& [layer, state] : pool.states()[d]) left.updates.insert(state.updates);
  }
  return left;
}

struct MemberThreads::Member {
  int process = 0;
  Descriptor leader;  // the member's end
  Descriptor end;     // the leader's
  RunWorld::Join join;
  std::atomic<DevicePool*> pool{nullptr};
  LeftState left;
  std::vector<Descriptor> names;  // second names of all its sockets
  std::unique_ptr<ControlRelay> relay;
  std::thread thread;
};

MemberThreads::MemberThreads(const ModelSpec& model, const OptimizerConfig& optimizer,
                             std::uint64_t seed, const ProcessShape& shape,
                             const RunOptions& options)
    : model_(model), optimizer_(optimizer), seed_(seed), shape_(shape), options_(options) {
  const int processes = 1 + *std::max_element(shape.process_of.begin(), shape.process_of.end());
  std::vector<std::vector<PeerSockets>> mesh = connect_all(processes, shape.links);
  GlooPlace gloo;
  if (shape.links == ProcessLinks::kGloo) gloo = lead_by_gloo("127.0.0.1", processes);
  const std::uint16_t port = gloo.store.port;
  name_again(mesh[0], own_names_);
  own_join_ = join_as(0, std::move(mesh[0]), std::move(gloo));
  for (int process = 1; process < processes; ++process) {
    auto member = std::make_unique<Member>();
    member->process = process;
    if (shape.judge) {
      relay(*member);
    } else {
      SocketPair control = make_socket_pair();
      member->end = std::move(control[0]);
      member->leader = std::move(control[1]);
    }
    std::vector<PeerSockets>& peers = mesh[static_cast<std::size_t>(process)];
    name_again(member->leader, member->names);
    name_again(peers, member->names);
    name_again(member->end, own_names_);
    member->join = join_as(process, std::move(peers), follow_by_gloo({}, port, process, processes));
    members_.push_back(std::move(member));
  }
  for (const auto& member : members_) {
    member->thread = std::thread([this, own = member.get()] { serve_as(*own); });
  }
}

// Second names keep connections open that their owners have closed.
MemberThreads::~MemberThreads() {
  shut(own_names_);
  (void)wait_for_members();
  for (const auto& member : members_) shut(member->names);
}

std::map<int, LeftState> MemberThreads::wait_for_members() {
  std::map<int, LeftState> left;
  for (const auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
    left.emplace(member->process, member->left);
  }
  return left;
}

void MemberThreads::relay(Member& member) {
  const int process = member.process;
  member.relay = std::make_unique<ControlRelay>(
      [this, process](const std::string& message) { return shape_.judge(process, message); },
      [this] { kill(shape_.killed); });
  member.end = member.relay->take_leader_end();
  member.leader = member.relay->take_member_end();
}

PoolPlace MemberThreads::place_in(int process) const {
  PoolPlace place = place_of(shape_.process_of, process);
  place.nccl = shape_.nccl;
  return place;
}

RunWorld::Join MemberThreads::join_as(int process, std::vector<PeerSockets> peers,
                                      GlooPlace gloo) const {
  RunWorld::Join join = shape_.links == ProcessLinks::kGloo
                            ? join_over_gloo(std::move(gloo))
                            : join_over_links(std::move(peers), process, false);
  if (!shape_.between) return join;
  return [join = std::move(join), between = shape_.between](std::uint32_t epoch,
                                                            const std::vector<int>& process_of,
                                                            const CommunicatorOptions& options) {
    return between(join(epoch, process_of, options), options);
  };
}

RunWorld MemberThreads::world() {
  RunWorld world{.place = place_in(0), .join = std::move(own_join_)};
  for (const auto& member : members_)
    world.members.emplace(member->process, std::move(member->end));
  return world;
}

void MemberThreads::show(const std::vector<Samples>& micro_batches,
                         const std::vector<std::int64_t>& numbers) {
  const std::lock_guard<std::mutex> lock(shown_);
  micro_batches_ = micro_batches;
  numbers_ = numbers;
}

void MemberThreads::show(const Samples& samples) {
  const std::lock_guard<std::mutex> lock(shown_);
  evaluated_ = samples;
}

void MemberThreads::kill(int process) {
  shut(process == 0 ? own_names_ : members_.at(static_cast<std::size_t>(process - 1))->names);
}

const DevicePool& MemberThreads::member_pool(int process) const {
  return *members_.at(static_cast<std::size_t>(process - 1))->pool.load();
}

void MemberThreads::serve_as(Member& own) {
  ControlMember control(std::move(own.leader), [&own](const std::string& sentence) {
    if (DevicePool* const pool = own.pool.load()) pool->abort(sentence);
  });
  try {
    const std::optional<OrderMessage> setup = control.next();
    if (!setup) return;
    std::unique_ptr<PrefixCache> cache;
    DevicePool pool(model_, optimizer_, seed_, place_in(own.process), options_);
    if (shape_.make_cache) {
      cache = shape_.make_cache(pool.model());
      pool.attach(*cache);
    }
    own.pool.store(&pool);
    control.answer(setup->number, encode(Done{}));
    const MemberSource source{
        .micro_batches =
            [this](const SampleRange&) {
              const std::lock_guard<std::mutex> lock(shown_);
              return micro_batches_;
            },
        .cache_numbers =
            [this](const SampleRange&) {
              const std::lock_guard<std::mutex> lock(shown_);
              return numbers_;
            },
        .part = [this](SamplePart) -> const SampleSource& { return evaluated_; },
        .join = std::move(own.join)};
    try {
      (void)serve(pool, control, source, options_);
    } catch (const PeerLost&) {
      own.pool.store(nullptr);
      own.left = state_of(pool);
      throw;
    }
    own.pool.store(nullptr);
    own.left = state_of(pool);
  } catch (const PeerLost&) {
    own.pool.store(nullptr);  // the leader is gone, as at the end of a test that fails
  }
}

ProcessRun::ProcessRun(const ModelSpec& model, const OptimizerConfig& optimizer, std::uint64_t seed,
                       int devices, const RunOptions& options)
    : ProcessRun(model, optimizer, seed, next_shape(devices), options) {}

StepResult ProcessRun::step(Step step, double learning_rate,
                            const std::vector<Samples>& micro_batches, bool record,
                            const std::vector<double>& rate_factors,
                            const std::vector<std::int64_t>& sample_ids) {
  show(micro_batches, sample_ids);
  return Run::step(step, learning_rate, micro_batches, record, rate_factors, sample_ids);
}

Run::Evaluation ProcessRun::evaluate(const Samples& samples, int micro_batch_size) {
  show(samples);
  return Run::evaluate(samples, micro_batch_size);
}

}  // namespace frazil
