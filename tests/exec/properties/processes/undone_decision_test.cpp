// A process that is lost while the sums behind a freezing decision are cleared changes no decision:
// the run records what one process would have recorded, and ends with its bits.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/train/processes/member.h"
#include "exec/train/processes/member_processes.h"
#include "profiles/error.h"
#include "tests/exec/support/control_relay.h"
#include "tests/exec/support/tiny_run.h"

namespace frazil {
namespace {

// The process 1 of a training: a thread of this one, which is cut off at the `nth` message of that
// name.
class MortalMember {
 public:
  MortalMember(std::string message, int nth, ControlRelay::Verdict verdict)
      : mesh_(make_socket_pairs(2)),
        relay_(
            [this, message = std::move(message), nth, verdict](const std::string& name) {
              const bool ends = name == message && ++seen_ == nth;
              return ends ? verdict : ControlRelay::Verdict::kPass;
            },
            [this] { cut_off(); }),
        leader_end_(relay_.take_leader_end()) {
    Descriptor control = relay_.take_member_end();
    for (const Descriptor* socket : {&control, &mesh_[1][0].steps, &mesh_[1][0].bulk}) {
      names_.emplace_back(::dup(socket->number()));
    }
    thread_ = std::thread([this, own = std::move(control)]() mutable {
      try {
        (void)serve_run(1, std::move(own), std::move(mesh_[1]), {});
      } catch (const PeerLost&) {
        return;  // it has been cut off
      }
    });
  }
  ~MortalMember() {
    leader_end_.close();
    thread_.join();
  }

  RunWorld world(const TrainOptions& options, const Dataset& data) {
    std::map<int, Descriptor> members;
    members.emplace(1, std::move(leader_end_));
    return lead_over(std::move(members), std::move(mesh_[0]), options, data, Transport::kSockets,
                     {});
  }
  int seen() const { return seen_; }

 private:
  void cut_off() {
    for (const Descriptor& name : names_) (void)::shutdown(name.number(), SHUT_RDWR);
  }

  std::vector<std::vector<PeerSockets>> mesh_;
  std::atomic<int> seen_{0};
  std::vector<Descriptor> names_;  // second names of all its sockets
  ControlRelay relay_;             // ends behind the thread
  Descriptor leader_end_;
  std::thread thread_;
};

TrainOptions autofreeze_options() {
  TrainOptions options;
  options.config = tiny_config();
  options.config.optimizer.learning_rate = 1e-2;
  vit_of(options.config).dropout = 0.1;
  options.config.data.train_samples = 64;
  options.config.data.validation_percent = 25;
  options.config.freeze.policy = AutoFreeze{.interval = 3};
  options.profile = tiny_profile(options.config);
  options.cluster = tiny_cluster(kAmpleMemory);  // for a replica on each device
  options.command = "frazil train";
  return options;
}

TEST(UndoneDecision, IsMadeOnceAndStandsWhoeverIsLostWhileSumsAreCleared) {
  TrainOptions options = autofreeze_options();
  const Dataset data = load_data(options.config);
  const TrainResult expected = train(options, data);
  ASSERT_EQ(expected.phases[0].plan.pipelines.size(), 2U);
  ASSERT_GE(masks_of(expected.trace).size(), 2U);
  for (const int nth : {1, 2}) {
    SCOPED_TRACE(nth);
    MortalMember member("clear sums", nth, ControlRelay::Verdict::kCutBefore);
    options.world = [&] { return member.world(options, data); };
    const TrainResult disturbed = train(options, data);
    EXPECT_EQ(member.seen(), nth) << "nobody was lost";
    EXPECT_EQ(steps_of<SignalsEvent>(disturbed.trace), steps_of<SignalsEvent>(expected.trace));
    EXPECT_EQ(masks_of(disturbed.trace), masks_of(expected.trace));
    EXPECT_EQ(disturbed.weight_hash, expected.weight_hash);
  }
}

}  // namespace
}  // namespace frazil
