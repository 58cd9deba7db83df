#pragma once
// The leader's side of a run over processes. It gives its members the jobs that all do together,
// collects their answers, takes part in the commit round of every step, and learns at once when a
// member is lost. It outlives every plan: members whose devices a plan does not use sleep in it.
// Processes that come while the run goes on are its guests until they have made what they need.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exec/control/commit_round.h"
#include "exec/control/control_watch.h"
#include "exec/devices/steady_time.h"

namespace frazil {

// What a member has made of a job.
struct MemberReply {
  int process = 0;
  std::string result;  // of a job that is done
  std::optional<FailureMessage> failure;
};

// Tells of a member that is not heard of.
struct Silence {
  int process = 0;
  bool is_over = false;  // it is heard of again
  std::string sentence;  // "nothing has been heard of rank 2 for 512 ms"
};

// When a member was found lost.
struct LossMoment {
  SteadyTime found;
  Duration unheard{0};  // then, since it was last heard of
};

class ControlGroup {
 public:
  struct Calls {  // by a thread of the group
    // The job under way ends in all processes: end it in this one. Never called after a commit.
    std::function<void(const std::string& sentence)> abort;
    // A member has not been heard of for long, or is heard of again.
    std::function<void(const Silence&)> suspect;
  };

  // Names a process by its ranks, as "rank 1" or "ranks 2 and 3", for sentences.
  using NameOf = std::function<std::string(int process)>;

  // `patience`: for a member to say how a job has ended that is over.
  ControlGroup(NameOf name_of, Calls calls, Duration patience = std::chrono::minutes(10));
  ~ControlGroup();

  // Admits a member, as process `process` > 0, over a connection that is ready.
  void admit(int process, Descriptor socket);
  // Ends the connection to a member with this exit code.
  void dismiss(int process, int code, const std::string& sentence);
  std::set<int> members() const;
  // Returns what has been lost since the last call, with the sentence that tells of it.
  std::map<int, std::string> take_lost();
  bool has_lost() const;  // since then
  // Returns when the first of those was lost that have been lost since the last call.
  std::optional<LossMoment> take_loss_moment();

  // Begins to set up a process that has come: tells it this job, and watches it. It takes part in
  // nothing, and its loss ends nothing, until take_in() makes it a member.
  void invite(int process, Descriptor socket, const std::string& job);
  std::set<int> guests() const;
  // Returns the guests whose setting up has ended since the last call, with a sentence if it has
  // failed. Those are guests no more.
  std::map<int, std::optional<std::string>> take_set_up();
  // Returns false if the guest has gone.
  bool take_in(int process);
  void set_patience(Duration patience) { watch_.set_patience(patience); }
  ClockOffset clock_of(int process) const { return watch_.clock_of(process); }

  // Counts a member as lost though it lives, and ends the connection to it. `why` follows "its
  // process".
  void give_up(int process, const std::string& why);

  // Begins a job: all members do it. Then collect() waits until all have answered, failed or been
  // lost, and gives up a member that says nothing for long though the job is over. `voters` are the
  // processes, this one (0) included where it has some, whose devices vote before they update;
  // empty for a job without a commit.
  void order(const std::string& job, const std::set<int>& voters = {}, Step step = 0);
  std::vector<MemberReply> collect();
  // Ends the job everywhere, with this cause, unless it is committed. May be called by any thread.
  void abort(const std::string& sentence);
  // The sentence that ended the present job, if something did.
  std::optional<std::string> cause() const;
  // Returns what the devices of a process have said with their votes in the present job.
  std::vector<std::string> notes_of(int process) const;
  CommitRound& round() { return round_; }

 private:
  struct Job {
    std::uint64_t number = 0;
    Step step = 0;
    std::set<int> waited;  // for an answer
    std::set<int> voters;  // that have not voted yet
    bool votes = false;
    bool is_committed = false;
    std::optional<std::string> cause;  // that ended it
    std::vector<MemberReply> replies;
    std::map<int, std::vector<std::string>> notes;  // of the votes, by process
  };

  void hear(int process, ControlMessage message);
  bool hear_guest(int process, const ControlMessage& message);
  void lose(int process, const std::string& why, Duration unheard);
  std::string say_lost(int process, const std::string& why) const;
  void tell_silence(int process, bool is_over, const std::string& what, Duration silent) const;
  void note_ready(int process, Step step, std::vector<std::string> notes);
  void note_reply(MemberReply reply, std::uint64_t number);
  void broadcast(const ControlMessage& message);

  NameOf name_of_;
  Calls calls_;
  Duration patience_;
  std::mutex losing_;         // held while a loss is noted and told; taken before the next one
  mutable std::mutex mutex_;  // guards all below but the last two
  std::condition_variable answered_;
  std::set<int> members_;
  std::map<int, std::string> lost_;
  std::optional<LossMoment> loss_moment_;
  std::set<int> guests_;
  std::map<int, std::optional<std::string>> set_up_;
  Job job_;
  CommitRound round_;
  ControlWatch watch_;  // last: its thread uses the members above
};

}  // namespace frazil
