#include "exec/links/joining/gathering.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "exec/links/joining/peer_calls.h"
#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// The leader's side, from the open door to the complete world.
class Gathering {
 public:
  Gathering(const LaunchPlace& place, const JoinOptions& options, JoinClock::time_point until)
      : place_(place), options_(options), until_(until) {}

  JoinedWorld gather(Descriptor listener, const std::optional<Secret>& token) {
    world_.processes = place_.processes;
    world_.token = token;
    world_.session = draw_secret();
    const auto size = static_cast<std::size_t>(place_.processes);
    world_.peers.resize(size);
    world_.control.resize(size);
    world_.members.resize(size);
    world_.members[0] = {options_.facts, {"", 0}, "process 0"};
    if (!listener.is_open()) return std::move(world_);
    world_.door = std::make_unique<Joiners>(
        std::move(listener), JoinTerms{options_.facts, token, true, options_.patience});
    world_.members[0].address = world_.door->address();
    world_.members[0].name += " at " + to_text(world_.door->address());
    joiners_.resize(size);
    while (find_missing() != 0 && !goes_without_missing()) take_arrivals();
    if (find_missing() != 0) leave_out_missing();
    welcome_all();
    connect();
    return std::move(world_);
  }

 private:
  void tell(const std::string& sentence) const {
    if (options_.tell) options_.tell(sentence);
  }

  // The lowest number that nobody has; 0 if all are here.
  int find_missing() const {
    for (std::size_t i = 1; i < joiners_.size(); ++i) {
      if (!joiners_[i]) return static_cast<int>(i);
    }
    return 0;
  }

  bool goes_without_missing() const {
    return options_.begins_with_fewer && JoinClock::now() >= until_;
  }

  // Those that have come get the lowest numbers; connecting takes time of its own.
  void leave_out_missing() {
    std::erase_if(joiners_, [](const std::optional<Joiner>& joiner) { return !joiner; });
    joiners_.emplace(joiners_.begin());  // this process
    const std::size_t size = joiners_.size();
    world_.processes = static_cast<int>(size);
    world_.peers.resize(size);
    world_.control.resize(size);
    world_.members.resize(size);
    until_ += options_.patience;
  }

  void take_arrivals() {
    if (JoinClock::now() >= until_ && !options_.begins_with_fewer) {
      throw PeerLost("process " + std::to_string(find_missing()) + " of " +
                     std::to_string(place_.processes) + " did not join in time");
    }
    Arrivals arrivals =
        world_.door->wait(std::min<Duration>(left_until(until_), milliseconds(100)));
    for (const std::string& sentence : arrivals.refused) tell(sentence);
    for (std::optional<Joiner>& joiner : joiners_) {
      if (!joiner || !is_closed(joiner->socket)) continue;
      tell(joiner->name + " has gone again");
      joiner.reset();
    }
    for (Joiner& joiner : arrivals.joiners) give_number(std::move(joiner));
  }

  // A launcher has given all numbers; without one they are given in the order of coming.
  void give_number(Joiner joiner) {
    const bool has_launcher = place_.launcher != Launcher::kFlags;
    if (joiner.asked && has_launcher) {
      const int number = *joiner.asked;
      if (const std::optional<std::string> objection = find_objection(number)) {
        tell(joiner.name + " " + *objection);
        refuse(joiner, *objection);
        return;
      }
      joiners_[static_cast<std::size_t>(number)] = std::move(joiner);
      return;
    }
    const int number = has_launcher ? 0 : find_missing();
    if (number == 0) {
      world_.waiting.push_back(std::move(joiner));
    } else {
      joiners_[static_cast<std::size_t>(number)] = std::move(joiner);
    }
  }

  std::optional<std::string> find_objection(int number) const {
    const std::string says = "says that it is process " + std::to_string(number);
    if (number == 0) return says + ", which leads the run";
    if (number >= place_.processes) {
      return says + " of a run of " + std::to_string(place_.processes);
    }
    const std::optional<Joiner>& other = joiners_[static_cast<std::size_t>(number)];
    if (other) return says + ", as " + other->name + " does";
    return std::nullopt;
  }

  void welcome_all() {
    Welcome words{.epoch = world_.epoch, .session = world_.session, .addresses = {}};
    words.addresses.push_back(world_.members[0].address);
    for (std::size_t i = 1; i < joiners_.size(); ++i) {
      words.addresses.push_back(joiners_[i]->address);
    }
    for (std::size_t i = 1; i < joiners_.size(); ++i) {
      Joiner& joiner = *joiners_[i];
      words.process = static_cast<int>(i);
      welcome(joiner, words, world_.token);
      world_.members[i] = {joiner.facts, joiner.address, name_of(words.process, joiner)};
      world_.control[i] = std::move(joiner.socket);
    }
  }

  void connect() {
    world_.door->admit_peers(0, world_.epoch, session_key(world_.token, world_.session));
    std::vector<int> others(static_cast<std::size_t>(world_.processes - 1));
    std::iota(others.begin(), others.end(), 1);
    accept_calls(*world_.door, others, world_.peers, until_, [&](Arrivals& arrivals) {
      for (const std::string& sentence : arrivals.refused) tell(sentence);
      for (Joiner& joiner : arrivals.joiners) world_.waiting.push_back(std::move(joiner));
      for (std::size_t i = 1; i < world_.control.size(); ++i) {
        if (is_closed(world_.control[i])) {
          throw PeerLost(world_.members[i].name + " has gone while the processes connected");
        }
      }
    });
  }

  const LaunchPlace& place_;
  const JoinOptions& options_;
  JoinClock::time_point until_;
  JoinedWorld world_;
  std::vector<std::optional<Joiner>> joiners_;  // by number
};

}  // namespace

std::string name_of(int number, const Joiner& joiner) {
  return "process " + std::to_string(number) + " at " + to_text(joiner.address);
}

JoinedWorld gather_world(const LaunchPlace& place, const JoinOptions& options, Descriptor listener,
                         const std::optional<Secret>& token, JoinClock::time_point until) {
  return Gathering(place, options, until).gather(std::move(listener), token);
}

}  // namespace frazil
