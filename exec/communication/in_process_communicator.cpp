#include "exec/communication/in_process_communicator.h"

#include <thread>
#include <utility>

#include "exec/communication/mailbox_room.h"
#include "exec/communication/room_rank.h"
#include "profiles/error.h"

namespace frazil {
namespace {

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<MailboxRoom> room, int rank)
      : end_(room, rank,
             static_cast<unsigned>(room->ranks()) <= std::thread::hardware_concurrency()) {}

  ~InProcessCommunicator() override { room().leave(rank()); }

  int rank() const override { return end_.rank(); }
  int size() const override { return room().ranks(); }

  void send(int peer, const Tag& tag, Tensors tensors) override {
    ENSURE(peer != rank() && peer >= 0 && peer < size(), "a message goes to another rank");
    end_.post(peer, tag, std::move(tensors));
  }

  Tensors receive(int peer, const Tag& tag) override { return end_.receive(peer, tag); }
  void barrier() override { room().pass_barrier(rank()); }
  void check() override {
    if (room().aborted()) room().throw_cause();
  }
  void abort(const std::string& reason) override { room().abort(reason); }
  void finish() override { room().finish(rank()); }
  void leave() override { room().leave(rank()); }

 private:
  MailboxRoom& room() const { return end_.room(); }

  RoomRank end_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_in_process_communicators(
    int ranks, const CommunicatorOptions& options) {
  ENSURE(ranks >= 1, "at least one rank");
  const auto room = std::make_shared<MailboxRoom>(ranks, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<InProcessCommunicator>(room, rank));
  }
  return communicators;
}

}  // namespace frazil
