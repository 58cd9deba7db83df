#include "tests/exec/support/late_run.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "exec/control/control_member.h"
#include "exec/links/passed_sockets.h"
#include "exec/links/socket.h"
#include "exec/run/jobs/job_codec.h"
#include "exec/run/jobs/serve_pool.h"
#include "exec/train/processes/member_processes.h"
#include "exec/train/processes/run_world.h"
#include "profiles/error.h"

namespace frazil {

struct LateMembers::Member {
  int process = 0;
  Descriptor leader;       // the member's end
  Descriptor end;          // the leader's
  Descriptor passage;      // the leader's end, over which the member gets sockets of others
  Descriptor own_passage;  // the member's
  std::vector<PeerSockets> peers;
  bool is_sound = true;
  std::atomic<DevicePool*> pool{nullptr};
  std::vector<Descriptor> names;  // second names of all its sockets
  std::thread thread;

  void name(const Descriptor& socket) { names.emplace_back(::dup(socket.number())); }
};

LateMembers::LateMembers(ModelSpec model, OptimizerConfig optimizer, std::uint64_t seed,
                         std::vector<int> process_of, const std::set<int>& begin)
    : model_(std::move(model)),
      optimizer_(optimizer),
      seed_(seed),
      process_of_(std::move(process_of)) {
  const int processes = process_of_.back() + 1;
  std::vector<std::vector<PeerSockets>> mesh = make_socket_pairs(processes);
  for (std::vector<PeerSockets>& own : mesh) {
    for (int process = 1; process < processes; ++process) {
      if (!begin.contains(process)) own[static_cast<std::size_t>(process)] = {};
    }
  }
  own_peers_ = std::move(mesh[0]);
  for (const int process : begin) {
    if (process == 0) continue;
    Member& member = start(process);
    member.peers = std::move(mesh[static_cast<std::size_t>(process)]);
    for (const PeerSockets& sockets : member.peers) {
      if (!sockets.are_open()) continue;
      member.name(sockets.steps);
      member.name(sockets.bulk);
    }
  }
  for (const auto& [process, member] : members_) {
    member->thread = std::thread([this, own = member.get()] { serve_as(*own); });
  }
}

LateMembers::~LateMembers() {
  for (const auto& [process, member] : members_) member->thread.join();
  for (const auto& member : gone_) member->thread.join();
}

LateMembers::Member& LateMembers::start(int process) {
  SocketPair control = make_socket_pair();
  SocketPair passage = make_socket_pair();
  auto member = std::make_unique<Member>();
  member->process = process;
  member->peers.resize(static_cast<std::size_t>(process_of_.back()) + 1);
  member->end = std::move(control[0]);
  member->leader = std::move(control[1]);
  member->passage = std::move(passage[0]);
  member->own_passage = std::move(passage[1]);
  member->name(member->leader);
  std::unique_ptr<Member>& place = members_[process];
  if (place) gone_.push_back(std::move(place));
  place = std::move(member);
  return *place;
}

void LateMembers::come(int process, bool is_sound) {
  Member& member = start(process);
  member.is_sound = is_sound;
  member.thread = std::thread([this, own = &member] { serve_as(*own); });
  coming_.push_back(process);
}

ConnectJob LateMembers::introduce(int process, std::uint32_t epoch, const std::set<int>& others) {
  Member& late = *members_.at(process);
  const auto pass = [epoch](const Descriptor& to, int of, PeerSockets sockets) {
    try {
      pass_sockets(to, {epoch, of, std::move(sockets)});
    } catch (const SocketError&) {
      return;  // it has gone, which is found out elsewhere
    }
  };
  for (const int other : others) {
    SocketPair steps = make_socket_pair();
    SocketPair bulk = make_socket_pair();
    late.name(steps[0]);
    late.name(bulk[0]);
    pass(late.passage, other, {std::move(steps[0]), std::move(bulk[0])});
    PeerSockets of_other{std::move(steps[1]), std::move(bulk[1])};
    if (other == 0) {
      own_late_ = std::move(of_other);
    } else {
      pass(members_.at(other)->passage, process, std::move(of_other));
    }
  }
  return {.process = process,
          .epoch = epoch,
          .others = {others.begin(), others.end()},
          .addresses = {}};
}

RunWorld LateMembers::world() {
  const auto links = std::make_shared<PeerLinks>(std::move(own_peers_));
  const auto own_sockets = [this](const ConnectJob& job, const std::function<void()>&) {
    std::map<int, PeerSockets> sockets;
    sockets.emplace(job.process, std::move(own_late_));
    return sockets;
  };
  const auto let_in = [this](const std::set<int>&) {
    std::vector<Newcomer> newcomers;
    for (const int process : std::exchange(coming_, {})) {
      newcomers.push_back({process, std::move(members_.at(process)->end)});
    }
    return newcomers;
  };
  RunWorld world{.place = place_of(process_of_, 0),
                 .join = join_over_links(links, 0, /*has_core_per_rank=*/false),
                 .connect = connect_over_links(links, own_sockets),
                 .door = RunDoor{.let_in = let_in,
                                 .introduce = [this](int process, std::uint32_t epoch,
                                                     const std::set<int>& others) {
                                   return introduce(process, epoch, others);
                                 }}};
  for (const auto& [process, member] : members_) {
    world.members.emplace(process, std::move(member->end));
  }
  return world;
}

void LateMembers::show(const std::vector<Samples>& micro_batches) {
  const std::lock_guard<std::mutex> lock(shown_);
  micro_batches_ = micro_batches;
}

void LateMembers::kill(int process) {
  for (const Descriptor& socket : members_.at(process)->names) {
    (void)::shutdown(socket.number(), SHUT_RDWR);
  }
}

void LateMembers::serve_as(Member& own) {
  ControlMember control(std::move(own.leader), [&own](const std::string& sentence) {
    if (DevicePool* const pool = own.pool.load()) pool->abort(sentence);
  });
  try {
    const std::optional<OrderMessage> setup = control.next();
    if (!setup) return;
    DevicePool pool(model_, optimizer_, seed_, place_of(process_of_, own.process), {});
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
        .cache_numbers = {},
        .part = {},
        .join = join_over_links(links, own.process, /*has_core_per_rank=*/false),
        .connect =
            [&](const ConnectJob& job, const std::function<void()>& check) {
              if (!own.is_sound) kill(own.process);
              connect(job, check);
            }};
    (void)serve(pool, control, source, {});
    own.pool.store(nullptr);
  } catch (const PeerLost&) {
    own.pool.store(nullptr);  // the leader is gone, or has let this process go
  }
}

}  // namespace frazil
