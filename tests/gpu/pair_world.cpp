#include "tests/gpu/pair_world.h"

#include <ATen/ATen.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "profiles/error.h"

namespace frazil {
namespace {

class PairWorld final : public Communicator {
 public:
  PairWorld(int rank, const PairSocket& socket) : rank_(rank), socket_(socket) {}

  int rank() const override { return rank_; }
  int size() const override { return 2; }

  void send(int /*peer*/, const Tag& tag, Tensors tensors) override {
    check();
    told([&] {
      socket_.put(tag);
      socket_.put(static_cast<std::int64_t>(tensors.size()));
      for (const at::Tensor& tensor : tensors) write(tensor.contiguous());
    });
  }

  Tensors receive(int /*peer*/, const Tag& tag) override {
    while (true) {
      check();
      const auto found = come_.find(tag);
      if (found != come_.end()) {
        Tensors tensors = std::move(found->second);
        come_.erase(found);
        return tensors;
      }
      told([this] { read_message(); });
    }
  }

  void barrier() override {
    constexpr int kEmpty = -1;
    const Tag tag{.kind = MessageKind::kProbe, .index = kEmpty, .step = round_++};
    send(1 - rank_, tag, {});
    (void)receive(1 - rank_, tag);
  }

  void check() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (reason_) throw PeerLost(*reason_);
    }
    if (!socket_.is_gone()) return;
    abort("rank " + std::to_string(1 - rank_) + " is gone");
    check();
  }

  void abort(const std::string& reason) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reason_) reason_ = reason;
  }

  void finish() override {}
  void leave() override {}

 private:
  template <class Call>
  void told(const Call& call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      abort("rank " + std::to_string(1 - rank_) + " is lost: " + error.what());
      check();
    }
  }

  void write(const at::Tensor& tensor) const {
    socket_.put(tensor.scalar_type());
    socket_.put(tensor.dim());
    for (const std::int64_t size : tensor.sizes()) socket_.put(size);
    socket_.write(tensor.const_data_ptr(), tensor.nbytes());
  }

  void read_message() {
    const Tag tag = socket_.get<Tag>();
    Tensors tensors(static_cast<std::size_t>(socket_.get<std::int64_t>()));
    for (at::Tensor& tensor : tensors) {
      const auto type = socket_.get<at::ScalarType>();
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(socket_.get<std::int64_t>()));
      for (std::int64_t& size : sizes) size = socket_.get<std::int64_t>();
      tensor = at::empty(sizes, type);
      socket_.read(tensor.mutable_data_ptr(), tensor.nbytes());
    }
    come_.emplace(tag, std::move(tensors));
  }

  int rank_;
  const PairSocket& socket_;
  std::map<Tag, Tensors> come_;
  Step round_ = 0;
  std::mutex mutex_;
  std::optional<std::string> reason_;
};

}  // namespace

std::unique_ptr<Communicator> make_pair_world(int rank, const PairSocket& socket) {
  return std::make_unique<PairWorld>(rank, socket);
}

}  // namespace frazil
