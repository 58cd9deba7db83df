// The part of Run (exec/run/run.h) that knows who belongs to it: it enters worlds, leaves lost
// processes behind and takes in those that come.
#include "exec/run/run.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "exec/run/jobs/member_faults.h"
#include "profiles/error.h"

namespace frazil {

Run::~Run() {
  if (group_) end(0, "the run is over");
}

// The door goes first: whoever is dismissed may knock again at once, and means another run.
void Run::end(int code, const std::string& sentence) {
  if (!group_) return;
  door_.reset();
  connect_ = {};
  for (const int process : group_->members()) group_->dismiss(process, code, sentence);
  for (const int process : group_->guests()) group_->dismiss(process, code, sentence);
}

std::set<int> Run::processes() const {
  std::set<int> all{0};
  if (group_) all.merge(group_->members());
  return all;
}

// By the places, not by who is there: a lost process keeps its name.
std::string Run::name_of(int process) const {
  return name_ranks({.process_of = home_of_}, process);
}

std::vector<int> Run::place_devices(const std::set<int>& there) const {
  std::vector<int> process_of = home_of_;
  for (int& process : process_of) {
    if (!there.contains(process)) process = -1;
  }
  return process_of;
}

// Every process makes its end of the new world by itself.
void Run::enter_world(bool has_newcomer) {
  ++epoch_;
  const std::vector<int> process_of = place_devices(processes());
  const auto join = [&] {
    const CommunicatorOptions communication{.deadline = options_.deadline,
                                            .check_order = options_.order == MessageOrder::kAsSent,
                                            .limit = pool_.wait_limit()};
    if (group_) group_->round().renew();
    pool_.join({.communicators = join_(epoch_, process_of, communication),
                .process_of = process_of,
                .commit = group_ ? &group_->round() : nullptr});
  };
  JoinJob job{epoch_, process_of, std::nullopt};
  if (has_newcomer) job.held = pool_.holdings();
  ask_done(std::move(job), join);
}

std::vector<DeviceId> Run::devices_of(const std::set<int>& processes) const {
  std::vector<DeviceId> devices;
  for (int d = 0; d < pool_.place().devices; ++d) {
    const DeviceId device{d};
    if (home_of_.empty() || processes.contains(home_of_[device.index()])) {
      devices.push_back(device);
    }
  }
  return devices;
}

std::vector<DeviceId> Run::devices_there() const { return devices_of(processes()); }

std::vector<DeviceId> Run::devices_expected() const {
  std::set<int> expected = processes();
  if (group_) expected.merge(group_->guests());
  return devices_of(expected);
}

std::vector<std::vector<DeviceId>> Run::devices_after_losses() const {
  std::vector<std::vector<DeviceId>> left;
  const std::set<int> there = processes();
  for (const int lost : there) {
    if (lost == 0) continue;
    std::set<int> others = there;
    others.erase(lost);
    left.push_back(devices_of(others));
  }
  return left;
}

std::optional<LossMoment> Run::take_loss_moment() {
  return group_ ? group_->take_loss_moment() : std::nullopt;
}

// Returns what has been lost.
std::map<int, std::string> Run::renew_world() {
  std::map<int, std::string> lost;
  for (;;) {
    for (const auto& [process, sentence] : group_->take_lost()) {
      // Whoever takes its place counts on.
      const auto tally = cache_tallies_.find(process);
      if (tally != cache_tallies_.end()) cache_before_[process] = tally->second;
      lost.emplace(process, sentence);
    }
    try {
      enter_world();
      return lost;
    } catch (const StepUndone&) {
      // Another one was lost meanwhile.
    }
  }
}

std::vector<std::string> Run::regroup() {
  ENSURE(group_ != nullptr, "a run over processes");
  std::vector<std::string> told;
  for (const auto& [process, sentence] : renew_world()) told.push_back(sentence);
  return told;
}

bool Run::sees_newcomers() {
  if (!group_ || !door_ || group_->has_lost()) return false;
  for (const auto& [process, failure] : group_->take_set_up()) {
    if (failure) {
      std::erase(ready_, process);
      arrivals_.push_back(*failure);
    } else {
      ready_.push_back(process);
    }
  }
  std::set<int> vacant(home_of_.begin(), home_of_.end());
  for (const int process : processes()) vacant.erase(process);
  for (const int process : group_->guests()) vacant.erase(process);
  for (Newcomer& newcomer : door_->let_in(vacant)) {
    group_->invite(newcomer.process, std::move(newcomer.control), encode(Job{SetupJob{setup_}}));
  }
  return !ready_.empty();
}

std::vector<std::string> Run::take_in() {
  for (const int process : std::exchange(ready_, {})) take_in(process);
  return std::exchange(lost_meanwhile_, {});
}

// One that goes before the world with it has begun leaves the old world as it was, but for what was
// lost besides.
void Run::take_in(int process) {
  const std::set<int> others = processes();
  // One that has gone already is not introduced: sockets that nobody asks for would be there still
  // when the next one comes in the world of that epoch.
  if (!group_->take_in(process)) return;
  try {
    const ConnectJob connect = door_->introduce(process, epoch_ + 1, others);
    ask_done(connect, [&] {
      connect_(connect, [this] {
        if (const auto cause = group_->cause()) throw StepUndone(*cause);
      });
    });
    enter_world(/*has_newcomer=*/true);
    arrivals_.push_back(name_of(process) + " has come");
  } catch (const std::runtime_error& failure) {
    const std::string sentence = name_of(process) + " is not taken in: " + failure.what();
    group_->dismiss(process, static_cast<int>(ExitCode::kPeerLost), sentence);
    arrivals_.push_back(sentence);
    std::map<int, std::string> lost = renew_world();
    lost.erase(process);
    for (const auto& [other, told] : lost) lost_meanwhile_.push_back(told);
  }
}

}  // namespace frazil
