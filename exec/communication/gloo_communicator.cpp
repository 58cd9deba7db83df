#include "exec/communication/gloo_communicator.h"

#include <utility>

namespace frazil {
namespace {

// Threads of the links read whatever the ranks do, so only a process that has stopped answers late.
constexpr auto kMoment = std::chrono::seconds(1);

// Threads of the links receive, so who waits only sleeps.
bool sleep_until(std::mutex& mutex, std::condition_variable& wake,
                 const std::function<bool()>& is_over, Duration limit) {
  std::unique_lock<std::mutex> lock(mutex);
  return wake.wait_for(lock, limit, is_over);
}

// Gives the links back only once no thread of theirs is inside of the world: the last one to let go
// of them must be none of these threads.
class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(std::unique_ptr<Communicator> end, std::shared_ptr<GlooLinks> links)
      : links_(std::move(links)), end_(std::move(end)) {}
  ~GlooCommunicator() override {
    end_.reset();
    links_->pause();
  }

  int rank() const override { return end_->rank(); }
  int size() const override { return end_->size(); }
  void send(int peer, const Tag& tag, Tensors tensors) override {
    end_->send(peer, tag, std::move(tensors));
  }
  Tensors receive(int peer, const Tag& tag) override { return end_->receive(peer, tag); }
  void barrier() override { end_->barrier(); }
  void abort(const std::string& reason) override { end_->abort(reason); }
  void finish() override { end_->finish(); }
  void leave() override { end_->leave(); }

 private:
  std::shared_ptr<GlooLinks> links_;
  std::unique_ptr<Communicator> end_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_gloo_communicators(
    std::shared_ptr<GlooLinks> links, std::uint32_t epoch, const ProcessPlace& place,
    const CommunicatorOptions& options) {
  GlooLinks& of = *links;
  auto functions = std::make_shared<const WorldLinks>(
      WorldLinks{.processes = of.processes(),
                 .open = [links](std::uint32_t opened,
                                 LinkWorld world) { links->open(opened, std::move(world)); },
                 .send_frame =
                     [&of](int process, LinkSocket socket, FrameHead head, Tensors tensors) {
                       of.send(process, socket, std::move(head), std::move(tensors));
                     },
                 .has_credit = [&of](int process,
                                     std::int64_t bytes) { return of.has_credit(process, bytes); },
                 .wait_for_credit =
                     [&of](int process, std::int64_t bytes, const auto& stop, Duration limit) {
                       return of.wait_for_credit(process, bytes, stop, limit);
                     },
                 .look = [] {},
                 .wait = sleep_until,
                 .nudge = [&of] { of.nudge(); },
                 .moment = kMoment});
  std::vector<std::unique_ptr<Communicator>> communicators =
      make_process_communicators(std::move(functions), epoch, place, options);
  for (std::unique_ptr<Communicator>& end : communicators) {
    end = std::make_unique<GlooCommunicator>(std::move(end), links);
  }
  return communicators;
}

}  // namespace frazil
