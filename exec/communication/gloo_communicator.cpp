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
  WorldLinks functions = world_links_of(links);
  functions.look = [] {};
  functions.wait = sleep_until;
  functions.moment = kMoment;
  std::vector<std::unique_ptr<Communicator>> communicators = make_process_communicators(
      std::make_shared<const WorldLinks>(std::move(functions)), epoch, place, options);
  for (std::unique_ptr<Communicator>& end : communicators) {
    end = std::make_unique<GlooCommunicator>(std::move(end), links);
  }
  return communicators;
}

}  // namespace frazil
