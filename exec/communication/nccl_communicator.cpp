#include "exec/communication/nccl_communicator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "exec/communication/nccl_header.h"
#include "exec/communication/nccl_issuer.h"
#include "exec/devices/tick_count.h"
#include "profiles/error.h"
#include "profiles/quantity_text.h"

namespace frazil {
namespace {

// The other world wakes nobody who waits for a GPU, so it is asked so often.
constexpr Duration kLook = std::chrono::milliseconds(2);

enum class Direction : std::uint8_t { kOut, kIn };

// A sender, receiver and lane, as seen from this rank.
struct Route {
  std::int64_t messages = 0;
  std::optional<std::size_t> channel;
};

std::string name_rank(int rank) { return "rank " + std::to_string(rank); }

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, const NcclOptions& options)
      : host_(std::move(host)),
        options_(options),
        table_(*options.table),
        issuer_(table_, [host = host_, self = name_rank(host_->rank())](const std::string& what) {
          host->abort(self + " cannot " + what);
        }) {
    ENSURE(options_.peers.empty() || options_.peers.size() == static_cast<std::size_t>(size()),
           "it is said of every rank whether NCCL reaches it");
  }

  ~NcclCommunicator() override { host_->leave(); }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  void send(int peer, const Tag& tag, Tensors tensors) override {
    ENSURE(peer != rank() && peer >= 0 && peer < size(), "a message goes to another rank");
    guard([&] {
      if (by_nccl(peer)) return send_with_header(peer, tag, std::move(tensors));
      host_->send(peer, tag, std::move(tensors));
    });
  }

  Tensors receive(int peer, const Tag& tag) override {
    ENSURE(peer != rank() && peer >= 0 && peer < size(), "a message comes from another rank");
    Tensors received;
    guard([&] {
      received = host_->receive(peer, tag);
      if (by_nccl(peer)) received = receive_announced(peer, tag, std::move(received));
    });
    return received;
  }

  bool sum_in_group(const at::Tensor& flat, const std::vector<int>& group,
                    const Tag& tag) override {
    const auto reached = [this](int peer) { return peer == rank() || by_nccl(peer); };
    if (!table_.carries(flat) || !std::all_of(group.begin(), group.end(), reached)) return false;
    guard([&] { add_up(flat, group, tag); });
    return true;
  }

  void barrier() override {
    guard([this] { host_->barrier(); });
  }
  void check() override { host_->check(); }
  void abort(const std::string& reason) override {
    host_->abort(reason);
    issuer_.abort();
  }
  void finish() override { host_->finish(); }
  void leave() override { host_->leave(); }

 private:
  bool by_nccl(int peer) const {
    return options_.peers.empty() || options_.peers[static_cast<std::size_t>(peer)];
  }

  // Gives the connections up as soon as the world is known to be aborted.
  template <class Call>
  void guard(const Call& call) {
    try {
      call();
    } catch (const PeerLost&) {
      issuer_.abort();
      throw;
    }
  }

  Route& route(int peer, Direction direction, const Tag& tag) {
    return routes_[{peer, direction, lane_of(tag.kind)}];
  }

  // The header goes first, so that the receiver never waits for a message that it knows nothing of.
  void send_with_header(int peer, const Tag& tag, Tensors tensors) {
    Route& out = route(peer, Direction::kOut, tag);
    NcclHeader header{.order = out.messages, .id = {}, .tensors = {}};
    Tensors parts(1);
    Tensors carried;
    for (at::Tensor& tensor : tensors) {
      const bool is_carried = table_.carries(tensor);
      header.tensors.push_back({.by_nccl = is_carried, .type = at::kFloat, .sizes = {}});
      if (is_carried) {
        header.tensors.back().type = tensor.scalar_type();
        header.tensors.back().sizes = tensor.sizes().vec();
        if (tensor.numel() > 0) carried.push_back(tensor.contiguous());
      } else {
        parts.push_back(std::move(tensor));
      }
    }
    const bool opens = !carried.empty() && !out.channel;
    if (opens) header.id = make_id();
    parts[0] = pack(header);
    host_->send(peer, tag, std::move(parts));
    ++out.messages;
    if (carried.empty()) return;
    if (opens) out.channel = open(*header.id, {.ranks = 2, .rank = 0}, name_rank(peer));
    post(*out.channel, std::move(carried), "send " + to_text(tag) + " to " + name_rank(peer),
         [table = &table_](NcclEnd end, const Tensors& sent) {
           for (const at::Tensor& tensor : sent) table->send(end, tensor, 1);
         });
  }

  Tensors receive_announced(int peer, const Tag& tag, Tensors parts) {
    const NcclHeader header = unpack_header(parts.empty() ? at::Tensor() : parts.front());
    Route& in = route(peer, Direction::kIn, tag);
    if (header.order != in.messages) refuse_order(peer, tag, header.order, in.messages);
    ++in.messages;
    Tensors received;
    Tensors carried;
    std::size_t beside = 1;
    for (const TensorForm& form : header.tensors) {
      if (form.by_nccl) {
        received.push_back(
            at::empty(form.sizes, at::TensorOptions(form.type).device(options_.place)));
        if (received.back().numel() > 0) carried.push_back(received.back());
      } else {
        ENSURE(beside < parts.size(), "host tensors stand beside their header");
        received.push_back(std::move(parts[beside++]));
      }
    }
    if (header.id) in.channel = open(*header.id, {.ranks = 2, .rank = 1}, name_rank(peer));
    if (carried.empty()) return received;
    ENSURE(in.channel.has_value(), "the first message of a connection brings its name");
    const auto work = post(*in.channel, std::move(carried),
                           "receive " + to_text(tag) + " from " + name_rank(peer),
                           [table = &table_](NcclEnd end, const Tensors& into) {
                             for (const at::Tensor& tensor : into) table->receive(end, tensor, 0);
                           });
    wait_for(*work, peer, tag, to_text(tag) + " over NCCL from " + name_rank(peer));
    return received;
  }

  // The group's first rank names the group's communicator when it is needed for the first time.
  void add_up(const at::Tensor& flat, const std::vector<int>& group, const Tag& tag) {
    const auto self = std::find(group.begin(), group.end(), rank());
    ENSURE(self != group.end(), "a rank adds to the sums of its own groups");
    const auto [known, is_new] = groups_.try_emplace(group, 0);
    if (is_new) {
      const NcclId id = meet(group, tag);
      known->second = open(
          id,
          {.ranks = static_cast<int>(group.size()), .rank = static_cast<int>(self - group.begin())},
          "the " + std::to_string(group.size()) + " ranks of a reduction");
    }
    const auto work = post(known->second, {flat}, "add up " + to_text(tag),
                           [table = &table_](NcclEnd end, const Tensors& sums) {
                             table->all_reduce(end, sums.front());
                           });
    const int peer = group.front() == rank() ? group.back() : group.front();
    wait_for(*work, peer, tag, to_text(tag) + " to be added up over NCCL");
  }

  NcclId meet(const std::vector<int>& group, const Tag& tag) {
    if (group.front() != rank()) {
      const Tensors parts = host_->receive(group.front(), tag);
      const NcclHeader header = unpack_header(parts.empty() ? at::Tensor() : parts.front());
      ENSURE(header.id.has_value(), "the first rank of a group names its communicator");
      return *header.id;
    }
    const NcclId id = make_id();
    for (const int peer : group) {
      if (peer != rank()) host_->send(peer, tag, {pack({.order = 0, .id = id, .tensors = {}})});
    }
    return id;
  }

  NcclId make_id() {
    std::future<NcclId> made = issuer_.make_id();
    TickCount waited(limit());
    while (made.wait_for(kLook) != std::future_status::ready) {
      host_->check();
      if (waited.is_over())
        fail(name_rank(rank()) + " waited " + to_text(limit()) + " for NCCL to begin");
    }
    try {
      return made.get();
    } catch (const std::future_error&) {
      tell_loss();
    }
  }

  std::size_t open(const NcclId& id, NcclPlace place, std::string peers) {
    place.gpu = options_.gpu;
    place.most_blocks = options_.most_blocks;
    issuer_.open(channels_, id, place, std::move(peers));
    return channels_++;
  }

  std::shared_ptr<NcclWork> post(std::size_t channel, Tensors tensors, std::string what,
                                 std::function<void(NcclEnd, const Tensors&)> issue) {
    auto work = std::make_shared<NcclWork>();
    work->issue = std::move(issue);
    work->tensors = std::move(tensors);
    work->after = {table_.mark_work(options_.gpu), table_.forget};
    work->what = std::move(what);
    issuer_.post(channel, work);
    return work;
  }

  Duration limit() const {
    return options_.waits.limit ? options_.waits.limit->time() : options_.waits.deadline;
  }

  // Never waits for a stream blindly: the other world, NCCL (by the issuing thread) and the clock
  // are asked meanwhile.
  void wait_for(const NcclWork& work, int peer, const Tag& tag, const std::string& awaited) {
    TickCount waited(limit(), TickCount::Busy::kCounted);  // the issuing thread always works
    while (!issuer_.wait(work, std::min<Duration>(kLook, waited.tick()))) {
      host_->check();
      if (!waited.is_over()) continue;
      fail({.kind = CommunicationFault::Kind::kDeadline,
            .rank = rank(),
            .peer = peer,
            .step = tag.step,
            .awaited = to_text(tag),
            .sentence = name_rank(rank()) + " waited " + to_text(limit()) + " for " + awaited});
    }
    if (work.state != NcclWork::State::kDone) tell_loss();
  }

  [[noreturn]] void refuse_order(int peer, const Tag& tag, std::int64_t sent, std::int64_t next) {
    fail({.kind = CommunicationFault::Kind::kOrder,
          .rank = rank(),
          .peer = peer,
          .step = tag.step,
          .awaited = to_text(tag),
          .sentence =
              name_rank(rank()) + " receives " + to_text(tag) + " from " + name_rank(peer) +
              " as message " + std::to_string(next) + " of its lane, which is sent as message " +
              std::to_string(sent) +
              ": NCCL has no tags and matches messages in the order in which they are sent"});
  }

  // The first cause of all ranks is thrown, which may be another than this one.
  [[noreturn]] void fail(const CommunicationFault& fault) {
    host_->abort(fault.sentence);
    try {
      host_->check();
    } catch (const std::exception& cause) {
      if (cause.what() != fault.sentence) throw;
    }
    throw CommunicationError(fault);
  }

  [[noreturn]] void fail(const std::string& sentence) {
    host_->abort(sentence);
    host_->check();
    throw PeerLost(sentence);
  }

  [[noreturn]] void tell_loss() {
    host_->check();
    throw PeerLost(name_rank(rank()) + " has given its connections over NCCL up");
  }

  std::shared_ptr<Communicator> host_;
  NcclOptions options_;
  const NcclTable& table_;
  std::map<std::tuple<int, Direction, MessageLane>, Route> routes_;
  std::map<std::vector<int>, std::size_t> groups_;
  std::size_t channels_ = 0;
  NcclIssuer issuer_;
};

}  // namespace

std::unique_ptr<Communicator> over_nccl(std::unique_ptr<Communicator> host,
                                        const NcclOptions& options) {
  ENSURE(options.table != nullptr, "a table of NCCL");
  return std::make_unique<NcclCommunicator>(std::move(host), options);
}

}  // namespace frazil
