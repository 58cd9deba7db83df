#include "exec/control/control_group.h"

#include <utility>

#include "exec/devices/tick_count.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// The number of the job of a guest; those of members begin at 1.
constexpr std::uint64_t kGuestJob = 0;

}  // namespace

ControlGroup::ControlGroup(NameOf name_of, Calls calls, Duration patience)
    : name_of_(std::move(name_of)),
      calls_(std::move(calls)),
      patience_(patience),
      round_([this](Step step,
                    std::vector<std::string> notes) { note_ready(0, step, std::move(notes)); },
             [this](const std::function<bool()>& holds) { watch_.look_until(holds); }),
      watch_(
          {.on_message = [this](int process,
                                ControlMessage message) { hear(process, std::move(message)); },
           .on_end = [this](int process, const std::string& why,
                            Duration unheard) { lose(process, why, unheard); },
           .on_silence =
               [this](int process, Duration silent) {
                 tell_silence(process, false,
                              "nothing has been heard of " + name_of_(process) + " for ", silent);
               },
           .on_sound =
               [this](int process, Duration silent) {
                 tell_silence(process, true, name_of_(process) + ": heard of again after ", silent);
               }}) {}

ControlGroup::~ControlGroup() = default;

void ControlGroup::tell_silence(int process, bool is_over, const std::string& what,
                                Duration silent) const {
  if (!calls_.suspect) return;
  calls_.suspect(
      {.process = process,
       .is_over = is_over,
       .sentence = what + std::to_string(silent / std::chrono::milliseconds(1)) + " ms"});
}

void ControlGroup::admit(int process, Descriptor socket) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ENSURE(process > 0 && members_.insert(process).second, "a member has a number of its own");
  }
  watch_.add(process, std::move(socket));
}

void ControlGroup::dismiss(int process, int code, const std::string& sentence) {
  (void)watch_.send(process, StopMessage{code, sentence});
  watch_.remove(process);
  const std::lock_guard<std::mutex> lock(mutex_);
  members_.erase(process);
  guests_.erase(process);
  set_up_.erase(process);
}

void ControlGroup::give_up(int process, const std::string& why) {
  (void)watch_.send(process,
                    StopMessage{static_cast<int>(ExitCode::kPeerLost), say_lost(process, why)});
  watch_.remove(process);
  lose(process, why, Duration{0});
}

std::set<int> ControlGroup::members() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return members_;
}

// Waits for whoever tells of a loss just now: what he ends must not be the job that comes next.
std::map<int, std::string> ControlGroup::take_lost() {
  const std::lock_guard<std::mutex> telling(losing_);
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(lost_, {});
}

bool ControlGroup::has_lost() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !lost_.empty();
}

std::optional<LossMoment> ControlGroup::take_loss_moment() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(loss_moment_, std::nullopt);
}

void ControlGroup::invite(int process, Descriptor socket, const std::string& job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ENSURE(process > 0 && !members_.contains(process) && guests_.insert(process).second,
           "a guest has a number of its own");
    set_up_.erase(process);
  }
  watch_.add(process, std::move(socket));
  (void)watch_.send(process, OrderMessage{.number = kGuestJob, .job = job});
}

std::set<int> ControlGroup::guests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return guests_;
}

std::map<int, std::optional<std::string>> ControlGroup::take_set_up() {
  std::map<int, std::optional<std::string>> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended = std::exchange(set_up_, {});
    for (const auto& [process, failure] : ended) {
      if (failure) guests_.erase(process);
    }
  }
  for (const auto& [process, failure] : ended) {
    if (!failure) continue;
    (void)watch_.send(process, StopMessage{static_cast<int>(ExitCode::kBadInput), *failure});
    watch_.remove(process);
  }
  return ended;
}

bool ControlGroup::take_in(int process) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (set_up_.contains(process)) return false;  // it has gone meanwhile
  return guests_.erase(process) > 0 && members_.insert(process).second;
}

void ControlGroup::order(const std::string& job, const std::set<int>& voters, Step step) {
  OrderMessage message{.number = 0, .job = job};
  std::optional<std::string> lost_before;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ENSURE(job_.waited.empty(), "one job at a time");
    job_ = Job{.number = job_.number + 1,
               .step = step,
               .waited = members_,
               .voters = voters,
               .votes = !voters.empty(),
               .is_committed = false,
               .cause = {},
               .replies = {},
               .notes = {}};
    message.number = job_.number;
    // A member that is lost between two jobs is missing in the next one.
    if (!lost_.empty()) lost_before = lost_.begin()->second;
  }
  broadcast(message);
  if (lost_before) abort(*lost_before);
}

std::vector<MemberReply> ControlGroup::collect() {
  if (round_.spins()) {
    watch_.look_until([this] {
      const std::lock_guard<std::mutex> lock(mutex_);
      return job_.waited.empty();
    });
  }
  // Ticks, since this process itself may have been stopped.
  TickCount silent(patience_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!answered_.wait_for(lock, silent.tick(), [this] { return job_.waited.empty(); })) {
    const bool is_over = job_.cause || job_.is_committed;
    if (!is_over || !silent.is_over()) continue;
    const std::set<int> hung = job_.waited;
    lock.unlock();
    for (const int process : hung) {
      give_up(process, "has not said in " + to_text(patience_) + " how its job has ended");
    }
    lock.lock();
  }
  return std::move(job_.replies);
}

std::vector<std::string> ControlGroup::notes_of(int process) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = job_.notes.find(process);
  return found == job_.notes.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> ControlGroup::cause() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return job_.cause;
}

void ControlGroup::broadcast(const ControlMessage& message) { watch_.send_all(members(), message); }

void ControlGroup::abort(const std::string& sentence) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (job_.is_committed || job_.cause) return;
    job_.cause = sentence;
  }
  round_.undo(sentence);
  broadcast(AbortMessage{sentence});
  calls_.abort(sentence);
}

// Returns true if the message is that of a guest.
bool ControlGroup::hear_guest(int process, const ControlMessage& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!guests_.contains(process)) return false;
  if (const auto* const answer = std::get_if<AnswerMessage>(&message)) {
    if (answer->number == kGuestJob) set_up_[process] = std::nullopt;
  } else if (const auto* const failure = std::get_if<FailureMessage>(&message)) {
    set_up_[process] = name_of_(process) + " is not taken in: " + failure->sentence;
  }
  return true;
}

void ControlGroup::hear(int process, ControlMessage message) {
  if (hear_guest(process, message)) return;
  if (auto* const ready = std::get_if<ReadyMessage>(&message)) {
    note_ready(process, ready->step, std::move(ready->notes));
  } else if (auto* const answer = std::get_if<AnswerMessage>(&message)) {
    note_reply({process, std::move(answer->result), std::nullopt}, answer->number);
  } else if (auto* const failure = std::get_if<FailureMessage>(&message)) {
    const std::uint64_t number = failure->number;
    const std::string sentence = failure->sentence;
    // What has failed in one process ends the job in all.
    if (failure->kind != FaultKind::kUndone) abort(sentence);
    note_reply({process, {}, std::move(*failure)}, number);
  }
}

void ControlGroup::note_ready(int process, Step step, std::vector<std::string> notes) {
  bool all = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!job_.votes || job_.step != step || job_.cause || job_.is_committed) return;
    job_.voters.erase(process);
    job_.notes[process] = std::move(notes);
    all = job_.voters.empty();
    if (all) job_.is_committed = true;
  }
  if (!all) return;
  broadcast(CommitMessage{step});
  round_.commit(step);
}

void ControlGroup::note_reply(MemberReply reply, std::uint64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (number != job_.number || job_.waited.erase(reply.process) == 0) return;
  job_.replies.push_back(std::move(reply));
  if (job_.waited.empty()) answered_.notify_all();
}

std::string ControlGroup::say_lost(int process, const std::string& why) const {
  const std::string name = name_of_(process);
  const bool is_one = name.find(' ') == name.rfind(' ');
  return name + (is_one ? " is lost: its process " : " are lost: their process ") + why;
}

void ControlGroup::lose(int process, const std::string& why, Duration unheard) {
  const std::string sentence = say_lost(process, why);
  const std::lock_guard<std::mutex> telling(losing_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (guests_.contains(process)) {
      set_up_[process] = name_of_(process) + ": its process " + why + " before it took part";
    }
    if (members_.erase(process) == 0) return;
    lost_[process] = sentence;
    if (!loss_moment_) loss_moment_ = LossMoment{std::chrono::steady_clock::now(), unheard};
  }
  abort(sentence);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (job_.waited.erase(process) > 0 && job_.waited.empty()) answered_.notify_all();
}

}  // namespace frazil
