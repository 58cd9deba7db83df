#include "exec/communication/nccl_issuer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "exec/devices/steady_time.h"

namespace frazil {
namespace {

// How long an end of the world waits for what is under way, and then for the issuing thread.
constexpr auto kPeace = std::chrono::milliseconds(500);
constexpr auto kPatience = std::chrono::milliseconds(1500);
// NCCL wakes nobody. Who asks at once sees a small message soon; who asks for long lets others have
// the core.
constexpr int kEagerAsks = 200;
constexpr auto kNap = std::chrono::microseconds(50);

}  // namespace

struct NcclIssuer::Shared {
  using Channels = std::map<std::size_t, std::unique_ptr<NcclChannel>>;
  using Job = std::function<void(Channels&)>;
  enum class Wish { kServe, kClose, kAbort };

  const NcclTable* table = nullptr;
  std::function<void(const std::string&)> on_failure;

  std::mutex mutex;  // guards all below
  std::condition_variable asked;
  std::condition_variable ended;
  std::vector<Job> inbox;
  Wish wish = Wish::kServe;
  bool is_over = false;

  void add(Job job) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (is_over) return;
      inbox.push_back(std::move(job));
    }
    asked.notify_one();
  }

  void set(Wish next) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      wish = std::max(wish, next);
    }
    asked.notify_one();
  }

  void serve();
  void work(Channels& channels);
  static bool advance(Channels& channels, bool& ended);
  void close(Channels& channels);
};

void NcclIssuer::Shared::serve() {
  Channels channels;
  try {
    work(channels);
  } catch (const std::exception& error) {
    on_failure(error.what());
    set(Wish::kAbort);
  }
  try {
    close(channels);
  } catch (const std::exception&) {
    // Nobody needs these communicators any more: what does not end in peace is aborted.
  }
  for (auto& [number, channel] : channels) channel->abort();
  std::vector<Job> unread;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    is_over = true;
    unread.swap(inbox);
  }
  ended.notify_all();
}

// Serves until the end is wished for.
void NcclIssuer::Shared::work(Channels& channels) {
  int asks = 0;
  bool busy = false;
  std::vector<Job> jobs;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      const auto is_asked = [this] { return !inbox.empty() || wish != Wish::kServe; };
      if (!busy) {
        asked.wait(lock, is_asked);
      } else if (asks > kEagerAsks) {
        asked.wait_for(lock, kNap, is_asked);
      }
      if (wish == Wish::kAbort || (wish == Wish::kClose && inbox.empty())) return;
      if (!inbox.empty()) asks = 0;
      jobs.swap(inbox);
    }
    for (const Job& job : jobs) job(channels);
    jobs.clear();
    bool some_ended = false;
    busy = advance(channels, some_ended);
    ++asks;
    if (!some_ended) continue;
    asks = 0;
    // Under the lock nobody is between looking at a work and going to sleep.
    { const std::lock_guard<std::mutex> lock(mutex); }
    ended.notify_all();
  }
}

bool NcclIssuer::Shared::advance(Channels& channels, bool& ended) {
  bool busy = false;
  for (auto& [number, channel] : channels) {
    if (channel->is_busy()) ended = channel->advance() || ended;
    busy = busy || channel->is_busy();
  }
  return busy;
}

// Ends in peace what ends soon; the rest is left for an abort.
void NcclIssuer::Shared::close(Channels& channels) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  bool open = true;
  while (open && since(begin) < kPeace) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (wish == Wish::kAbort) return;
    }
    bool ended = false;
    open = advance(channels, ended);
    for (auto& [number, channel] : channels) {
      if (!channel->is_busy()) open = !channel->close() || open;
    }
    if (open) std::this_thread::sleep_for(kNap);
  }
}

NcclIssuer::NcclIssuer(const NcclTable& table, std::function<void(const std::string&)> on_failure)
    : shared_(std::make_shared<Shared>()) {
  shared_->table = &table;
  shared_->on_failure = std::move(on_failure);
  thread_ = std::thread([shared = shared_] { shared->serve(); });
}

NcclIssuer::~NcclIssuer() {
  shared_->set(Shared::Wish::kClose);
  bool is_over = false;
  {
    std::unique_lock<std::mutex> lock(shared_->mutex);
    is_over =
        shared_->ended.wait_for(lock, kPeace + kPatience, [this] { return shared_->is_over; });
  }
  if (is_over) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

std::future<NcclId> NcclIssuer::make_id() {
  auto promise = std::make_shared<std::promise<NcclId>>();
  std::future<NcclId> made = promise->get_future();
  shared_->add([promise, table = shared_->table](Shared::Channels&) {
    try {
      promise->set_value(table->make_id());
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("begin a communicator over NCCL: ") + error.what());
    }
  });
  return made;
}

void NcclIssuer::open(std::size_t channel, const NcclId& id, const NcclPlace& place,
                      std::string peers) {
  shared_->add([channel, id, place, peers = std::move(peers),
                table = shared_->table](Shared::Channels& channels) {
    channels[channel] = std::make_unique<NcclChannel>(*table, id, place, peers);
  });
}

void NcclIssuer::post(std::size_t channel, std::shared_ptr<NcclWork> work) {
  shared_->add([channel, work = std::move(work)](Shared::Channels& channels) {
    channels.at(channel)->add(work);
  });
}

void NcclIssuer::abort() { shared_->set(Shared::Wish::kAbort); }

bool NcclIssuer::wait(const NcclWork& work, Duration time) {
  const auto is_over = [&] {
    return shared_->is_over || work.state.load() >= NcclWork::State::kDone;
  };
  std::unique_lock<std::mutex> lock(shared_->mutex);
  return shared_->ended.wait_for(lock, time, is_over);
}

}  // namespace frazil
