#define USE_C10D_GLOO  // c10d's header is empty without
#include "exec/links/gloo_group.h"

#include <ATen/ATen.h>

#include <chrono>
#include <csignal>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;

// A wait that is over its time breaks the connection, so none ever is; who gives up aborts.
constexpr auto kForEver = std::chrono::hours(24 * 365);
constexpr int kTestTag = 7;

// libtorch's messages have lines of places in its sources; the first line says what happened.
GlooError to_error(const std::string& what, const std::exception& error) {
  const std::string text = error.what();
  return GlooError(what + ": " + to_one_line(text.substr(0, text.find('\n'))));
}

c10::intrusive_ptr<c10d::Store> open_store(GlooPlace& place) {
  c10d::TCPStoreOptions options;
  options.port = place.store.port;
  options.isServer = place.process == 0;
  options.waitWorkers = false;
  options.timeout = std::chrono::duration_cast<milliseconds>(place.limit);
  // By itself the store would listen at every address of the host.
  if (options.isServer) options.masterListenFd = place.listener.release();
  const auto store = c10::make_intrusive<c10d::TCPStore>(place.store.host, options);
  return c10::make_intrusive<c10d::PrefixStore>(place.name, store);
}

// Gloo and its store write to peers that may have gone, in threads of their own and in those that
// send.
void ignore_broken_pipes() {
  struct sigaction present {};
  if (sigaction(SIGPIPE, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

struct GlooTransfer::State {
  c10::intrusive_ptr<c10d::Work> work;
  at::Tensor tensor;
};

struct GlooGroup::Group {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
  std::mutex mutex;  // a process group serves one thread at a time
};

bool GlooTransfer::wait() {
  try {
    return state_->work->wait(std::chrono::duration_cast<milliseconds>(kForEver));
  } catch (const std::exception& error) {
    throw to_error("a connection of Gloo is broken", error);
  }
}

void GlooTransfer::abort() { state_->work->abort(); }

GlooGroup::GlooGroup(GlooPlace place)
    : process_(place.process), processes_(place.processes), group_(std::make_unique<Group>()) {
  ignore_broken_pipes();
  try {
    group_->store = open_store(place);
    auto options = c10d::ProcessGroupGloo::Options::create(
        std::chrono::duration_cast<milliseconds>(place.limit));
    options->devices.push_back(
        c10d::ProcessGroupGloo::createDeviceForHostname(place.own_host, false));
    group_->group =
        c10::make_intrusive<c10d::ProcessGroupGloo>(group_->store, process_, processes_, options);
  } catch (const std::exception& error) {
    throw to_error("the processes do not come together by Gloo", error);
  }
  test();
}

GlooGroup::~GlooGroup() = default;

GlooTransfer GlooGroup::send(at::Tensor tensor, int process, int tag) {
  const std::lock_guard<std::mutex> lock(group_->mutex);
  std::vector<at::Tensor> tensors{tensor};
  try {
    return GlooTransfer(std::make_shared<GlooTransfer::State>(
        GlooTransfer::State{group_->group->send(tensors, process, tag), std::move(tensor)}));
  } catch (const std::exception& error) {
    throw to_error("Gloo cannot send", error);
  }
}

GlooTransfer GlooGroup::receive(at::Tensor tensor, int process, int tag) {
  const std::lock_guard<std::mutex> lock(group_->mutex);
  std::vector<at::Tensor> tensors{tensor};
  try {
    return GlooTransfer(std::make_shared<GlooTransfer::State>(
        GlooTransfer::State{group_->group->recv(tensors, process, tag), std::move(tensor)}));
  } catch (const std::exception& error) {
    throw to_error("Gloo cannot receive", error);
  }
}

// Headers and library are of different revisions: what comes back must be what was sent, also where
// the receive is longer than the message.
void GlooGroup::test() {
  struct Trial {
    at::Tensor sent;
    at::Tensor got;
    GlooTransfer sending;
    GlooTransfer receiving;
  };
  std::vector<Trial> trials;
  for (int peer = 0; peer < processes_; ++peer) {
    if (peer == process_) continue;
    Trial trial;
    trial.sent = at::arange(1000, at::kInt) * (process_ + 2);
    trial.got = at::full({1500}, -1, at::kInt);
    trial.receiving = receive(trial.got, peer, kTestTag);
    trial.sending = send(trial.sent, peer, kTestTag);
    trials.push_back(std::move(trial));
  }
  int peer = 0;
  for (Trial& trial : trials) {
    if (peer == process_) ++peer;
    const bool is_done = trial.receiving.wait() && trial.sending.wait();
    const at::Tensor expected = at::arange(1000, at::kInt) * (peer + 2);
    if (!is_done || !at::equal(trial.got.slice(0, 0, 1000), expected) ||
        !at::equal(trial.got.slice(0, 1000), at::full({500}, -1, at::kInt))) {
      throw GlooError(
          "Gloo of this libtorch does not carry what is sent (found in a trial at the "
          "start); use the communication by sockets");
    }
    ++peer;
  }
}

}  // namespace frazil
