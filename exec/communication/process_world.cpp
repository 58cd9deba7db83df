#include "exec/communication/process_world.h"

#include <algorithm>
#include <thread>

#include "exec/communication/wait_graph.h"
#include "exec/devices/tick_count.h"
#include "exec/tensors/tensor_bytes.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string say_lost(const std::vector<int>& ranks, const std::string& why) {
  return name_ranks(ranks) +
         (ranks.size() == 1 ? " is lost: its process " : " are lost: their process ") + why;
}

constexpr int kNowhere = -1;

std::set<int> others_of(const ProcessPlace& place) {
  std::set<int> others(place.process_of_rank.begin(), place.process_of_rank.end());
  others.erase(place.process);
  others.erase(kNowhere);
  return others;
}

}  // namespace

ProcessWorld::ProcessWorld(std::shared_ptr<const WorldLinks> links, std::uint32_t epoch,
                           const ProcessPlace& place, const CommunicatorOptions& options)
    : links_(std::move(links)),
      epoch_(epoch),
      place_(place),
      others_(others_of(place)),
      room_(std::make_unique<MailboxRoom>(static_cast<int>(place.process_of_rank.size()), options,
                                          outside())),
      settlement_(*links_, epoch, place.process, others_,
                  [this](const WorldCause& cause) { room_->adopt(cause); }),
      finished_(place.process_of_rank.size()) {}

RoomOutside ProcessWorld::outside() {
  RoomOutside outside;
  for (std::size_t rank = 0; rank < place_.process_of_rank.size(); ++rank) {
    outside.is_here.push_back(is_here(static_cast<int>(rank)));
  }
  outside.look = [this] { links_->look(); };
  outside.wait = [this](auto& mutex, auto& wake, const auto& is_over, Duration limit) {
    return links_->wait(mutex, wake, is_over, limit);
  };
  outside.nudge = [this] { links_->nudge(); };
  outside.tell = [this](const WorldCause& cause) { settlement_.propose(cause); };
  outside.settle = [this] { settlement_.wait(); };
  return outside;
}

// The links may outlive this world, which they do not keep alive.
void ProcessWorld::begin() {
  const std::weak_ptr<ProcessWorld> weak = weak_from_this();
  links_->open(epoch_, {.take =
                            [weak](int process, FrameHead&& head, Tensors&& tensors) {
                              const std::shared_ptr<ProcessWorld> world = weak.lock();
                              if (world) world->take(process, std::move(head), std::move(tensors));
                            },
                        .lose =
                            [weak](int process, const std::string& why) {
                              const std::shared_ptr<ProcessWorld> world = weak.lock();
                              if (world) world->lose(process, why);
                            }});
  leave_others_behind();
}

// A process without a rank here belongs to no later world either. One that has been stopped keeps
// its sockets open, and would keep what was lent to it.
void ProcessWorld::leave_others_behind() {
  for (int process = 0; process < links_->processes; ++process) {
    if (process != place_.process && !others_.contains(process)) {
      links_->lose(process, "is left behind");
    }
  }
}

std::vector<int> ProcessWorld::ranks_of(int process) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < room_->ranks(); ++rank) {
    if (process_of(rank) == process) ranks.push_back(rank);
  }
  return ranks;
}

std::vector<int> ProcessWorld::own_ranks() const { return ranks_of(place_.process); }

bool ProcessWorld::spins() const {
  const int ranks = place_.ranks_on_host > 0 ? place_.ranks_on_host : room_->ranks();
  return static_cast<unsigned>(ranks) <= std::thread::hardware_concurrency();
}

void ProcessWorld::send(int from, int to, const Tag& tag, std::uint64_t order, Tensors tensors) {
  const int process = process_of(to);
  const std::int64_t bytes = count_bytes(tensors);
  if (!links_->has_credit(process, bytes)) wait_for_credit(from, to, tag, bytes);
  links_->send(process, socket_of(lane_of(tag.kind)),
               {.kind = FrameKind::kMessage,
                .epoch = epoch_,
                .from = from,
                .to = to,
                .tag = tag,
                .order = order},
               std::move(tensors));
}

void ProcessWorld::wait_for_credit(int from, int to, const Tag& tag, std::int64_t bytes) {
  TickCount waited(room_->deadline());
  const auto is_aborted = [&] { return room_->aborted(); };
  while (!links_->wait_for_credit(process_of(to), bytes, is_aborted, waited.tick())) {
    if (!waited.is_over()) continue;
    CommunicationFault fault{.kind = CommunicationFault::Kind::kDeadline,
                             .rank = from,
                             .peer = to,
                             .step = tag.step,
                             .awaited = to_text(tag),
                             .sentence = {}};
    fault.sentence = "rank " + std::to_string(from) + " waited " + to_text(room_->deadline()) +
                     " to send " + fault.awaited + " to rank " + std::to_string(to) +
                     ", whose process takes no more";
    room_->fail(fault);
    return;
  }
}

void ProcessWorld::tell_arrival(int rank, std::uint64_t count) {
  for (const int other : others_) {
    links_->send(other, LinkSocket::kSteps,
                 {.kind = FrameKind::kBarrier, .epoch = epoch_, .from = rank, .number = count});
  }
}

// Goes behind what the rank has sent over each socket: both have to have come before it counts.
void ProcessWorld::tell_finished(int rank, std::int64_t jobs) {
  FrameHead head{.kind = FrameKind::kFinished, .epoch = epoch_, .from = rank};
  head.number = static_cast<std::uint64_t>(jobs);
  for (const int other : others_) {
    for (const LinkSocket socket : {LinkSocket::kSteps, LinkSocket::kBulk}) {
      head.to = static_cast<int>(socket);
      links_->send(other, socket, head);
    }
  }
}

void ProcessWorld::take(int process, FrameHead&& head, Tensors&& tensors) {
  const bool is_of_rank = head.kind == FrameKind::kMessage || head.kind == FrameKind::kBarrier ||
                          head.kind == FrameKind::kFinished;
  if (!others_.contains(process)) throw FrameError("found a frame, expected none of that process");
  if (is_of_rank &&
      (head.from < 0 || head.from >= room_->ranks() || process_of(head.from) != process)) {
    throw FrameError("found a frame of rank " + std::to_string(head.from) +
                     ", expected one of its own");
  }
  switch (head.kind) {
    case FrameKind::kMessage:
      return take_message(std::move(head), std::move(tensors));
    case FrameKind::kBarrier:
      return room_->note_arrival(head.from, head.number);
    case FrameKind::kFinished: {
      const auto jobs = static_cast<std::int64_t>(head.number);
      auto& [steps, bulk] = finished_[static_cast<std::size_t>(head.from)];
      (head.to == 0 ? steps : bulk) = jobs;
      if (steps == bulk) room_->note_finished(head.from, jobs);
      return;
    }
    case FrameKind::kCause: {
      const std::optional<WorldCause> cause = decode_cause(head.text);
      if (!cause) throw FrameError("found a cause that cannot be read, expected one");
      return settlement_.take_cause(process, head.number != 0, *cause);
    }
    case FrameKind::kAnswer:
      return settlement_.take_answer(process);
    case FrameKind::kTaken:
    case FrameKind::kGreeting:
    case FrameKind::kGreeted:
      throw FrameError("found a frame of the links, expected one of a world");
  }
}

void ProcessWorld::take_message(FrameHead&& head, Tensors&& tensors) {
  if (head.to < 0 || head.to >= room_->ranks() || !is_here(head.to)) {
    throw FrameError("found a message for rank " + std::to_string(head.to) +
                     ", expected one of the ranks here");
  }
  const bool fresh =
      room_->post(head.to, MessageKey(head.from, head.tag), {std::move(tensors), head.order});
  if (fresh) return;
  room_->abort("rank " + std::to_string(head.from) + " sends " + to_text(head.tag) + " to rank " +
               std::to_string(head.to) + ", which has not yet received the one before");
}

bool ProcessWorld::have_left(const std::vector<int>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    const auto& [steps, bulk] = finished_[static_cast<std::size_t>(rank)];
    return steps == kEveryJob && bulk == kEveryJob;
  });
}

void ProcessWorld::lose(int process, const std::string& why) {
  if (!others_.contains(process)) return;
  settlement_.lose(process);
  const std::vector<int> ranks = ranks_of(process);
  if (!have_left(ranks)) settlement_.declare({say_lost(ranks, why)});
}

}  // namespace frazil
