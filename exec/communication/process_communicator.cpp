#include "exec/communication/process_communicator.h"

#include <utility>

#include "exec/communication/process_world.h"
#include "exec/communication/room_rank.h"
#include "exec/communication/wait_graph.h"
#include "profiles/error.h"

namespace frazil {
namespace {

class ProcessCommunicator final : public Communicator {
 public:
  ProcessCommunicator(std::shared_ptr<ProcessWorld> world, int rank)
      : world_(std::move(world)), end_(world_->share_room(), rank, world_->spins()) {}

  ~ProcessCommunicator() override { leave(); }

  int rank() const override { return end_.rank(); }
  int size() const override { return room().ranks(); }

  void send(int peer, const Tag& tag, Tensors tensors) override {
    ENSURE(peer != rank() && peer >= 0 && peer < size(), "a message goes to another rank");
    if (world_->is_here(peer)) {
      end_.post(peer, tag, std::move(tensors));
    } else if (!room().aborted()) {
      world_->send(rank(), peer, tag, end_.take_order(peer, tag), std::move(tensors));
    }
    // Also takes in what others have sent, the end of the world among it.
    world_->links().look();
    if (room().aborted()) room().throw_cause();
  }

  Tensors receive(int peer, const Tag& tag) override { return end_.receive(peer, tag); }

  void barrier() override {
    if (!room().aborted()) world_->tell_arrival(rank(), ++barriers_);
    room().pass_barrier(rank());
  }

  void check() override {
    world_->links().look();
    if (room().aborted()) room().throw_cause();
  }

  // An end that others have told already comes first.
  void abort(const std::string& reason) override {
    world_->links().look();
    room().abort(reason);
  }

  void finish() override {
    if (jobs_ == kEveryJob) return;
    ++jobs_;
    if (!room().aborted()) world_->tell_finished(rank(), jobs_);
    room().finish(rank());
  }

  void leave() override {
    if (std::exchange(jobs_, kEveryJob) == kEveryJob) return;
    if (!room().aborted()) world_->tell_finished(rank(), kEveryJob);
    room().leave(rank());
  }

 private:
  MailboxRoom& room() const { return end_.room(); }

  std::shared_ptr<ProcessWorld> world_;
  RoomRank end_;
  std::uint64_t barriers_ = 0;
  std::int64_t jobs_ = 0;
};

std::shared_ptr<const WorldLinks> as_world_links(const std::shared_ptr<PeerLinks>& links) {
  WorldLinks functions = world_links_of(links);
  functions.look = [&of = *links] { of.look(); };
  functions.wait = [&of = *links](auto& mutex, auto& wake, const auto& is_over, Duration limit) {
    return of.wait(mutex, wake, is_over, limit);
  };
  return std::make_shared<const WorldLinks>(std::move(functions));
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_process_communicators(
    std::shared_ptr<PeerLinks> links, std::uint32_t epoch, const ProcessPlace& place,
    const CommunicatorOptions& options) {
  return make_process_communicators(as_world_links(links), epoch, place, options);
}

std::vector<std::unique_ptr<Communicator>> make_process_communicators(
    std::shared_ptr<const WorldLinks> links, std::uint32_t epoch, const ProcessPlace& place,
    const CommunicatorOptions& options) {
  ENSURE(!place.process_of_rank.empty(), "at least one rank");
  for (const int process : place.process_of_rank) {
    ENSURE(process >= -1 && process < links->processes, "a rank lives in a process of the links");
  }
  const auto world = std::make_shared<ProcessWorld>(std::move(links), epoch, place, options);
  world->begin();
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (const int rank : world->own_ranks()) {
    communicators.push_back(std::make_unique<ProcessCommunicator>(world, rank));
  }
  return communicators;
}

}  // namespace frazil
