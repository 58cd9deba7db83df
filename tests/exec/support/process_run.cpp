#include "tests/exec/support/process_run.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "exec/communication/process_communicator.h"
#include "exec/control/control_member.h"
#include "exec/links/passed_sockets.h"
#include "exec/links/socket.h"
#include "exec/run/jobs/job_codec.h"
#include "exec/run/jobs/serve_pool.h"
#include "exec/train/processes/member_processes.h"
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
          call % 3 == 2 ? ProcessLinks::kTcp : ProcessLinks::kUnix};
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
  return links == ProcessLinks::kTcp ? make_tcp_mesh(processes) : make_socket_pairs(processes);
}

}  // namespace

struct MemberThreads::Member {
  int process = 0;
  Descriptor leader;  // the member's end
  Descriptor end;     // the leader's
  std::vector<PeerSockets> peers;
  Descriptor passage;      // the leader's end, over which it gets sockets of late ones
  Descriptor own_passage;  // the member's
  bool is_sound = true;
  std::atomic<DevicePool*> pool{nullptr};
  std::vector<Descriptor> cut;  // second names of all its sockets
  std::thread thread;

  void keep_names() {
    cut.emplace_back(::dup(leader.number()));
    for (const PeerSockets& sockets : peers) {
      if (!sockets.are_open()) continue;
      cut.emplace_back(::dup(sockets.steps.number()));
      cut.emplace_back(::dup(sockets.bulk.number()));
    }
  }
};

MemberThreads::MemberThreads(const ModelSpec& model, const OptimizerConfig& optimizer,
                             std::uint64_t seed, const ProcessShape& shape,
                             const RunOptions& options)
    : model_(model), optimizer_(optimizer), seed_(seed), shape_(shape), options_(options) {
  const int processes = 1 + *std::max_element(shape.process_of.begin(), shape.process_of.end());
  std::vector<std::vector<PeerSockets>> mesh = connect_all(processes, shape.links);
  for (std::vector<PeerSockets>& own : mesh) {
    for (const int late : shape.late) own[static_cast<std::size_t>(late)] = {};
  }
  own_peers_ = std::move(mesh[0]);
  for (int process = 1; process < processes; ++process) {
    if (shape.late.contains(process)) continue;
    auto member = std::make_unique<Member>();
    member->process = process;
    member->peers = std::move(mesh[static_cast<std::size_t>(process)]);
    start(std::move(member));
  }
}

void MemberThreads::start(std::unique_ptr<Member> member) {
  SocketPair control = make_socket_pair();
  SocketPair passage = make_socket_pair();
  member->end = std::move(control[0]);
  member->leader = std::move(control[1]);
  member->passage = std::move(passage[0]);
  member->own_passage = std::move(passage[1]);
  member->keep_names();
  std::unique_ptr<Member>& place = members_[member->process];
  if (place) gone_.push_back(std::move(place));
  place = std::move(member);
  place->thread = std::thread([this, own = place.get()] { serve_as(*own); });
}

MemberThreads::~MemberThreads() {
  for (const auto& [process, member] : members_) member->thread.join();
  for (const auto& member : gone_) member->thread.join();
}

void MemberThreads::come(int process, bool is_sound) {
  auto member = std::make_unique<Member>();
  member->process = process;
  member->is_sound = is_sound;
  member->peers.resize(static_cast<std::size_t>(shape_.process_of.back()) + 1);
  start(std::move(member));
  coming_.push_back(process);
}

ConnectJob MemberThreads::introduce(int process, std::uint32_t epoch, const std::set<int>& others) {
  for (const int other : others) {
    SocketPair steps = make_socket_pair();
    SocketPair bulk = make_socket_pair();
    Member& late = *members_.at(process);
    late.cut.emplace_back(::dup(steps[0].number()));
    late.cut.emplace_back(::dup(bulk[0].number()));
    pass_sockets(late.passage, {epoch, other, {std::move(steps[0]), std::move(bulk[0])}});
    PeerSockets of_other{std::move(steps[1]), std::move(bulk[1])};
    if (other == 0) {
      own_late_ = std::move(of_other);
    } else {
      pass_sockets(members_.at(other)->passage, {epoch, process, std::move(of_other)});
    }
  }
  return {.process = process,
          .epoch = epoch,
          .others = {others.begin(), others.end()},
          .addresses = {}};
}

RunWorld MemberThreads::world() {
  const auto links = std::make_shared<PeerLinks>(std::move(own_peers_));
  RunWorld world{
      .place = place_of(shape_.process_of, 0),
      .join = join_over_links(links, 0, /*has_core_per_rank=*/false),
      .connect = connect_over_links(links,
                                    [this](const ConnectJob& job, const auto&) {
                                      std::map<int, PeerSockets> sockets;
                                      sockets.emplace(job.process, std::move(own_late_));
                                      return sockets;
                                    }),
      .door = RunDoor{.let_in =
                          [this](const std::set<int>&) {
                            std::vector<Newcomer> newcomers;
                            for (const int process : std::exchange(coming_, {})) {
                              newcomers.push_back({process, std::move(members_.at(process)->end)});
                            }
                            return newcomers;
                          },
                      .introduce =
                          [this](int process, std::uint32_t epoch, const std::set<int>& others) {
                            return introduce(process, epoch, others);
                          }}};
  for (const auto& [process, member] : members_) {
    world.members.emplace(process, std::move(member->end));
  }
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
  for (const Descriptor& socket : members_.at(process)->cut) {
    (void)::shutdown(socket.number(), SHUT_RDWR);
  }
}

const DevicePool& MemberThreads::member_pool(int process) const {
  return *members_.at(process)->pool.load();
}

void MemberThreads::serve_as(Member& own) {
  ControlMember control(std::move(own.leader), [&own](const std::string& sentence) {
    if (DevicePool* const pool = own.pool.load()) pool->abort(sentence);
  });
  try {
    const std::optional<OrderMessage> setup = control.next();
    if (!setup) return;
    DevicePool pool(model_, optimizer_, seed_, place_of(shape_.process_of, own.process), options_);
    own.pool.store(&pool);
    control.answer(setup->number, encode(Done{}));
    const auto links = std::make_shared<PeerLinks>(std::move(own.peers));
    const RunWorld::Connect connect =
        connect_over_links(links, take_from_leader(own.process, std::move(own.own_passage)));
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
        .part = [this](SamplePart) -> const Samples& { return evaluated_; },
        .join = join_over_links(links, own.process, /*has_core_per_rank=*/false),
        .connect =
            [&](const ConnectJob& job, const std::function<void()>& check) {
              if (!own.is_sound) kill(own.process);
              connect(job, check);
            }};
    (void)serve(pool, control, source, options_);
    own.pool.store(nullptr);
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
