#include "exec/devices/workers.h"

#include <ATen/Parallel.h>
#include <pthread.h>
#include <sched.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include "exec/devices/cores.h"
#include "exec/devices/start_thread.h"
#include "exec/devices/tick_count.h"
#include "profiles/quantity_text.h"

namespace frazil {

// A job, shared by run() and the workers: a worker that is stuck in it may outlive both.
struct Workers::Round {
  std::function<void(DeviceId)> job;
  std::function<void(const std::string&)> on_failure;
  std::vector<bool> ended;  // by rank
  int running = 0;
  std::exception_ptr failure;  // the first failure
  std::string sentence;        // of that failure
  bool abandoned = false;      // by run(): nobody is left to be told
  DeviceId first{0};

  std::size_t place_of(DeviceId device) const { return device.index() - first.index(); }
};

struct Workers::Shared {
  std::mutex mutex;  // guards all below, rounds included
  std::condition_variable work;
  std::condition_variable changed;  // a worker has ended or failed
  std::shared_ptr<Round> round;
  std::uint64_t number = 0;  // of the round
  bool stop = false;

  void serve(DeviceId device);
  void fail(Round& round);
};

namespace {

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  // Pinning is a matter of speed alone; if it is forbidden the run goes on unpinned.
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Sets one intra-op thread. A thread takes the process-wide number of threads at its first use,
// whatever it set before; so the first use comes first.
void use_one_intra_op_thread() {
  (void)at::get_num_threads();
  at::set_num_threads(1);
}

// Returns "rank 1 has" or "ranks 0 and 1 have".
std::string name_missing(const std::vector<bool>& ended, DeviceId first) {
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (!ended[rank]) ranks.push_back(std::to_string(first.index() + rank));
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += ranks[i];
  }
  return text + (ranks.size() == 1 ? " has" : " have");
}

// Returns ": step 17, action 1B3" for one rank, ": rank 0 at step 17, action 0F1; rank 1 at ..."
// for several.
std::string tell_places(const std::vector<bool>& ended, DeviceId first, const JobLimit& limit) {
  if (!limit.place) return "";
  const bool is_one = std::count(ended.begin(), ended.end(), false) == 1;
  std::string text;
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (ended[rank]) continue;
    text += text.empty() ? ": " : "; ";
    const DeviceId device{first.index() + rank};
    if (!is_one) text += "rank " + std::to_string(device.value) + " at ";
    text += limit.place(device);
  }
  return text;
}

}  // namespace

void Workers::Shared::serve(DeviceId device) {
  std::uint64_t seen = 0;
  for (;;) {
    std::shared_ptr<Round> current;
    {
      std::unique_lock<std::mutex> lock(mutex);
      work.wait(lock, [&] { return stop || number != seen; });
      if (stop) return;
      seen = number;
      current = round;
    }
    try {
      current->job(device);
    } catch (...) {
      fail(*current);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    current->ended[current->place_of(device)] = true;
    if (--current->running == 0) changed.notify_all();
    current.reset();  // under the lock, so that an awaited job is run()'s to destroy
  }
}

void Workers::Shared::fail(Round& failed) {
  std::string sentence = "a device failed";
  try {
    throw;
  } catch (const std::exception& error) {
    sentence = error.what();
  } catch (...) {
    sentence = "a device failed for an unknown reason";
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (failed.failure || failed.abandoned) return;
    failed.failure = std::current_exception();
    failed.sentence = sentence;
    changed.notify_all();
  }
  if (failed.on_failure) failed.on_failure(sentence);
}

Workers::Workers(int devices, WorkerOptions options)
    : options_(std::move(options)), shared_(std::make_shared<Shared>()) {
  const std::vector<int> cores = allowed_cores();
  const bool own_core = options_.pins && static_cast<std::size_t>(devices) <= cores.size();
  const auto make_job = [&](int d) {
    const int core = own_core ? cores[static_cast<std::size_t>(d)] : -1;
    return [shared = shared_, device = DeviceId{options_.first.value + d}, core] {
      if (core >= 0) pin_to(core);
      use_one_intra_op_thread();
      shared->serve(device);
    };
  };
  threads_ = start_threads(devices, make_job, [this] { stop(); });
}

// Lets the threads end that have no job.
void Workers::stop() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->work.notify_all();
}

Workers::~Workers() {
  stop();
  std::vector<bool> ended(threads_.size(), true);
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (shared_->round) ended = shared_->round->ended;
  }
  for (std::size_t rank = 0; rank < threads_.size(); ++rank) {
    if (ended[rank]) {
      threads_[rank].join();
    } else {
      threads_[rank].detach();
    }
  }
}

int Workers::devices() const { return static_cast<int>(threads_.size()); }

void Workers::run(const std::function<void(DeviceId)>& job,
                  const std::function<void(const std::string&)>& on_failure,
                  const JobLimit& limit) {
  const auto round =
      std::make_shared<Round>(Round{.job = job,
                                    .on_failure = on_failure,
                                    .ended = std::vector<bool>(threads_.size(), false),
                                    .running = devices(),
                                    .failure = {},
                                    .sentence = {},
                                    .abandoned = false,
                                    .first = options_.first});
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    const std::shared_ptr<Round>& before = shared_->round;  // there only if it was abandoned
    if (before && before->running > 0) {
      throw WorkerStuck(name_missing(before->ended, before->first) +
                        " not come back from the job before");
    }
    shared_->round = round;
    ++shared_->number;
  }
  shared_->work.notify_all();
  wait_for(*round, limit);
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->round.reset();
  if (round->failure) std::rethrow_exception(round->failure);
}

void Workers::wait_for(Round& round, const JobLimit& limit) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const auto has_ended = [&] { return round.running == 0; };
  const auto has_changed = [&] { return round.running == 0 || round.failure; };
  const auto progress = [&] { return limit.progress ? limit.progress() : 0; };
  std::int64_t before = progress();
  TickCount waited(limit.time);
  bool in_time = shared_->changed.wait_for(lock, waited.tick(), has_changed);
  while (!in_time) {
    if (waited.is_over()) {
      const std::int64_t now = progress();
      if (now == before) break;
      before = now;
      waited.restart();
    }
    in_time = shared_->changed.wait_for(lock, waited.tick(), has_changed);
  }
  if (!in_time) {
    round.sentence =
        name_missing(round.ended, round.first) +
        (limit.progress ? " not ended an action within " : " not ended the job within ") +
        to_text(limit.time) + tell_places(round.ended, round.first, limit);
    round.failure = std::make_exception_ptr(PeerLost(round.sentence));
    lock.unlock();
    if (round.on_failure) round.on_failure(round.sentence);
    lock.lock();
  }
  TickCount grace(options_.grace, TickCount::Busy::kCounted);
  do {
    if (shared_->changed.wait_for(lock, grace.tick(), has_ended)) return;
  } while (!grace.is_over());
  round.abandoned = true;
  const std::string sentence = round.sentence + "; " + name_missing(round.ended, round.first) +
                               " not come back " + to_text(options_.grace) + " later";
  lock.unlock();
  give_up(sentence);
}

void Workers::give_up(const std::string& sentence) {
  if (options_.on_stuck) {
    options_.on_stuck(sentence);
    throw WorkerStuck(sentence);
  }
  (void)std::fprintf(stderr, "frazil: %s\n", sentence.c_str());
  std::_Exit(static_cast<int>(ExitCode::kPeerLost));
}

}  // namespace frazil
