// clang-format off
// Measures the control plane of a run of many processes (exec/control): one real leader, and members
// whose ends are all served by one thread of this process, which answers as members do and says ten
// times a second for each that it lives. Two rounds, over Unix sockets:
//   step  the leader hands a step out, all are ready, it commits, all answer
//   loss  a member's connection ends inside a step: all others give the step up, tell so, and
//         enter a world without it
// All ends share the cores of this machine, so the processor time of the leader's threads stands
// beside the time of a round: what a round takes where members have cores of their own.
// By hand: build/bin/bench_control_plane [members] [rounds].
// clang-format on

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/control/control_group.h"
#include "exec/control/control_socket.h"
#include "exec/links/socket.h"
#include "exec/run/jobs/job_codec.h"
#include "profiles/error.h"
#include "tests/bench/support/spread.h"

namespace frazil {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNobody = -1;
constexpr int kMicroBatches = 8;
constexpr int kLosses = 40;
constexpr std::size_t kAimBytes = 300;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// The kinds of messages, and their names.
enum Kind : std::size_t { kOrder, kJoin, kReady, kCommit, kAnswer, kAbort, kFailure, kBeat };
constexpr std::array kKinds{"order of a step",
                            "order to enter a world",
                            "ready",
                            "commit",
                            "answer of a step",
                            "abort",
                            "failure",
                            "beat"};

double cpu_ms(clockid_t clock) {
  timespec time{};
  (void)::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// The losses of a step, as the devices of a last stage tell them.
std::vector<LossSample> some_losses() {
  std::vector<LossSample> losses;
  for (int m = 0; m < kMicroBatches; ++m) losses.push_back({MicroBatchId{m}, LayerId{13}, 0.5});
  return losses;
}

std::string encode_answer() {
  StepAnswer answer;
  answer.losses = some_losses();
  return encode(answer);
}

// The far ends of all members.
class Members {
 public:
  explicit Members(int count) : epoll_(::epoll_create1(EPOLL_CLOEXEC)), count_(count) {
    ENSURE(epoll_.is_open(), "the system gives an epoll");
  }
  ~Members() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }

  // Takes the end of member `process`. Requires: its thread does not run, or the member is lost.
  void add(int process, Descriptor socket) {
    const int number = socket.number();
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_[process] = std::make_unique<End>(std::move(socket));
    epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<std::uint32_t>(process)}};
    ENSURE(::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, number, &event) == 0, "a socket is watched");
  }
  void start() {
    thread_ = std::thread([this] { serve(); });
  }
  // The next order is this step; 0: another job.
  void expect(Step step) {
    const std::lock_guard<std::mutex> lock(mutex_);
    step_ = step;
  }
  // In the next step, this member is lost once all others are ready.
  void plan_loss(int process) {
    const std::lock_guard<std::mutex> lock(mutex_);
    victim_ = process;
    ready_ = 0;
  }
  Clock::time_point lost_at() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lost_at_;
  }
  // Returns the processor time of the members' thread so far, in ms.
  double cpu_ms() const { return cpu_ms_; }
  // Returns the bytes of a message of each kind.
  std::array<std::size_t, kKinds.size()> bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }

 private:
  struct End {
    explicit End(Descriptor descriptor) : socket(std::move(descriptor)) {}
    ControlSocket socket;
    std::uint64_t order = 0;    // under way; 0: none
    bool knows_leader = false;  // has answered its first beat
  };

  void serve() {
    std::vector<epoll_event> events(256);
    const Clock::time_point begin = Clock::now();
    std::int64_t beats = 0;
    while (!stops_) {
      const int found = ::epoll_wait(epoll_.number(), events.data(), 256, 1);
      const std::lock_guard<std::mutex> lock(mutex_);
      for (int i = 0; i < found; ++i) {
        read(static_cast<int>(events[static_cast<std::size_t>(i)].data.u32));
      }
      // Members began at different times, so they speak at different times, too.
      const auto due = static_cast<std::int64_t>(ms_since(begin) * count_ / 100);
      for (; beats < due; ++beats) beat(1 + static_cast<int>(beats % count_));
      cpu_ms_ = frazil::cpu_ms(CLOCK_THREAD_CPUTIME_ID);
    }
  }

  void read(int process) {
    End& end = *ends_.at(process);
    std::vector<ControlMessage> messages;
    if (!end.socket.receive(messages)) {
      (void)::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, end.socket.descriptor(), nullptr);
    }
    for (const ControlMessage& message : messages) hear(process, end, message);
  }

  void hear(int process, End& end, const ControlMessage& message) {
    if (const auto* const order = std::get_if<OrderMessage>(&message)) {
      end.order = order->number;
      if (step_ > 0) {
        note(kOrder, message);
        be_ready(process, end);
      } else {
        note(kJoin, message);
        answer(end, done_);
      }
    } else if (std::holds_alternative<CommitMessage>(message)) {
      note(kCommit, message);
      answer(end, result_);
    } else if (const auto* const beat = std::get_if<BeatMessage>(&message)) {
      const std::int64_t now = Clock::now().time_since_epoch().count();
      if (!std::exchange(end.knows_leader, true)) {
        say(end, kBeat, BeatMessage{now, beat->sent_ns, now});
      }
    } else if (const auto* const abort = std::get_if<AbortMessage>(&message)) {
      note(kAbort, message);
      if (end.order == 0) return;
      say(end, kFailure, FailureMessage{end.order, FaultKind::kUndone, abort->sentence});
      end.order = 0;
    }
  }

  void be_ready(int process, End& end) {
    if (process != victim_) {
      say(end, kReady, ReadyMessage{step_, {note_}});
      ++ready_;
    }
    if (victim_ == kNobody || ready_ < count_ - 1) return;
    lost_at_ = Clock::now();
    ends_.at(victim_)->socket.shut_down();
    victim_ = kNobody;
  }

  void answer(End& end, const std::string& result) {
    say(end, kAnswer, AnswerMessage{end.order, result});
    end.order = 0;
  }

  void beat(int process) {
    say(*ends_.at(process), kBeat, BeatMessage{Clock::now().time_since_epoch().count()});
  }

  void say(End& end, Kind kind, const ControlMessage& message) {
    note(kind, message);
    (void)end.socket.send(message);
  }

  void note(Kind kind, const ControlMessage& message) {
    std::size_t& bytes = bytes_[kind];
    if (bytes == 0) bytes = to_bytes(message).size();
  }

  Descriptor epoll_;
  int count_;
  const std::string done_ = encode(Done{});
  const std::string note_ = encode(some_losses());
  const std::string result_ = encode_answer();
  std::atomic<bool> stops_{false};
  mutable std::mutex mutex_;  // guards all below but the thread
  std::map<int, std::unique_ptr<End>> ends_;
  Step step_ = 0;
  int victim_ = kNobody;
  int ready_ = 0;
  Clock::time_point lost_at_;
  std::array<std::size_t, kKinds.size()> bytes_{};
  std::atomic<double> cpu_ms_{0};
  std::thread thread_;
};

class ControlPlane {
 public:
  explicit ControlPlane(int members)
      : members_(members),
        group_([](int process) { return "rank " + std::to_string(process); },
               {.abort = [](const std::string&) {}, .suspect = {}}),
        ends_(members) {
    for (int process = 1; process <= members_; ++process) admit(process);
    ends_.start();
  }

  // Returns what a step takes.
  double step() {
    ends_.expect(step_ + 1);
    const Clock::time_point begin = Clock::now();
    order_step();
    ENSURE(group_.collect().size() == static_cast<std::size_t>(members_), "all have answered");
    return ms_since(begin);
  }

  // Returns what it takes from the end of a member's connection until all others are in a new
  // world.
  double lose(int process) {
    ends_.plan_loss(process);
    ends_.expect(step_ + 1);
    order_step();
    (void)group_.collect();
    ENSURE(group_.take_lost().size() == 1, "one is lost");
    group_.round().renew();
    ends_.expect(0);
    group_.order(encode(Job(JoinJob{++epoch_, processes_without(process)})));
    ENSURE(group_.collect().size() == static_cast<std::size_t>(members_ - 1), "all have joined");
    const double time = ms_since(ends_.lost_at());
    admit(process);
    return time;
  }

  std::array<std::size_t, kKinds.size()> bytes() const { return ends_.bytes(); }
  // Returns the processor time of the leader so far, in ms.
  double cpu_ms() const { return frazil::cpu_ms(CLOCK_PROCESS_CPUTIME_ID) - ends_.cpu_ms(); }

 private:
  void admit(int process) {
    SocketPair pair = make_socket_pair();
    ends_.add(process, std::move(pair[1]));
    group_.admit(process, std::move(pair[0]));
  }

  // Hands a step out and votes, for this process.
  void order_step() {
    std::set<int> voters{0};
    for (int process = 1; process <= members_; ++process) voters.insert(process);
    group_.round().begin(++step_, 1);
    group_.order(
        encode(Job(StepJob{{.step = step_, .learning_rate = 0.1, .rate_factors = {}}, {}})), voters,
        step_);
    try {
      group_.round().vote(DeviceId{0}, step_, WaitLimit(std::chrono::minutes(1)));
    } catch (const StepUndone&) {
      // A member is lost, as was planned.
    }
  }

  std::vector<int> processes_without(int lost) const {
    std::vector<int> process_of(static_cast<std::size_t>(members_) + 1);
    for (int device = 0; device <= members_; ++device) {
      process_of[static_cast<std::size_t>(device)] = device == lost ? -1 : device;
    }
    return process_of;
  }

  int members_;
  Step step_ = 0;
  std::uint32_t epoch_ = 0;
  ControlGroup group_;
  Members ends_;
};

// Every member takes a descriptor at either end.
void allow_descriptors(int members) {
  rlimit limit{};
  ENSURE(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "the system tells its limits");
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, static_cast<rlim_t>(2 * members + 64));
  ENSURE(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit below the hard one is granted");
}

// The times of one kind of round, and the leader's processor time in each.
struct Rounds {
  std::vector<double> times;
  std::vector<double> cpu_times;

  void measure(const ControlPlane& plane, const std::function<double()>& round) {
    const double before = plane.cpu_ms();
    times.push_back(round());
    cpu_times.push_back(plane.cpu_ms() - before);
  }
};

void print(const char* name, const Rounds& rounds, double bar) {
  const auto text = [](const std::vector<double>& values) {
    const Spread spread = find_spread(values);
    return to_range_text(spread.median, spread.least, spread.most, 2);
  };
  std::printf("%-5s %s ms; the leader computes %s ms; aim: %.0f ms\n", name,
              text(rounds.times).c_str(), text(rounds.cpu_times).c_str(), bar);
}

int measure(int members, int rounds) {
  allow_descriptors(members);
  ControlPlane plane(members);
  for (int i = 0; i < 5; ++i) (void)plane.step();
  Rounds steps;
  Rounds losses;
  for (int i = 0; i < rounds; ++i) {
    steps.measure(plane, [&] { return plane.step(); });
    if (i % std::max(1, rounds / kLosses) != 0) continue;
    losses.measure(plane, [&] { return plane.lose(1 + i % members); });
  }
  std::printf("%d members; medians and ranges of %zu steps and %zu losses\n", members,
              steps.times.size(), losses.times.size());
  print("step", steps, 5);
  print("loss", losses, 50);
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    std::printf("%-24s %5zu bytes%s\n", kKinds[kind], plane.bytes()[kind],
                plane.bytes()[kind] <= kAimBytes ? "" : ", above the aim of 300");
  }
  return 0;
}

}  // namespace
}  // namespace frazil

int main(int count, char** arguments) {
  return frazil::measure(count > 1 ? std::atoi(arguments[1]) : 1024,
                         count > 2 ? std::atoi(arguments[2]) : 400);
}
