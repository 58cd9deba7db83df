#include "exec/ring_reduction.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "profiles/error.h"

namespace frazil {
namespace {

// One flat buffer, so that shares are equal up to rounding whatever the tensors' sizes.
at::Tensor flatten(const Tensors& sums, const Tensors& like) {
  Tensors flat;
  for (std::size_t i = 0; i < like.size(); ++i) {
    flat.push_back(sums.empty()
                       ? at::zeros({like[i].numel()}, like[i].options().requires_grad(false))
                       : sums[i].reshape(-1));
  }
  return at::cat(flat);
}

Tensors unflatten(const at::Tensor& flat, const Tensors& like) {
  Tensors tensors;
  std::int64_t first = 0;
  for (const at::Tensor& tensor : like) {
    tensors.push_back(flat.narrow(0, first, tensor.numel()).view(tensor.sizes()).clone());
    first += tensor.numel();
  }
  return tensors;
}

class Ring {
 public:
  Ring(at::Tensor flat, const std::vector<DeviceId>& owners, Communicator& communicator, Tag tag)
      : communicator_(communicator), tag_(tag), size_(static_cast<int>(owners.size())) {
    const auto self = std::find(owners.begin(), owners.end(), DeviceId{communicator.rank()});
    ENSURE(self != owners.end(), "an owner takes part in its layers' reduction");
    place_ = static_cast<int>(self - owners.begin());
    next_ = owners[static_cast<std::size_t>((place_ + 1) % size_)].value;
    previous_ = owners[static_cast<std::size_t>((place_ + size_ - 1) % size_)].value;
    const std::int64_t total = flat.numel();
    for (int s = 0; s < size_; ++s) {
      const std::int64_t first = total * s / size_;
      shares_.push_back(flat.narrow(0, first, total * (s + 1) / size_ - first));
    }
  }

  // Share (place + 1) is complete here afterwards.
  void scatter() {
    tag_.kind = MessageKind::kGradientNodes;
    for (int round = 0; round < size_ - 1; ++round) {
      tag_.from = round;
      send(share(place_ - round));
      at::Tensor& mine = share(place_ - round - 1);
      mine = at::add(receive(), mine);
    }
  }

  void gather() {
    tag_.kind = MessageKind::kGradientSum;
    for (int round = 0; round < size_ - 1; ++round) {
      tag_.from = round;
      send(share(place_ + 1 - round));
      share(place_ - round) = receive();
    }
  }

  at::Tensor flat() const { return at::cat(shares_); }

 private:
  at::Tensor& share(int index) {
    return shares_[static_cast<std::size_t>((index % size_ + size_) % size_)];
  }
  void send(const at::Tensor& share) { communicator_.send(next_, tag_, {share}); }
  at::Tensor receive() { return communicator_.receive(previous_, tag_).at(0); }

  Communicator& communicator_;
  Tag tag_;
  int size_;
  int place_ = 0;
  int next_ = 0;
  int previous_ = 0;
  Tensors shares_;
};

}  // namespace

Tensors reduce_in_ring(Tensors sums, const Tensors& like, const std::vector<DeviceId>& owners,
                       Communicator& communicator, Tag tag) {
  const c10::NoGradGuard no_grad;
  // Plain slices: autograd's notes on views would tie one thread's shares to another's buffer.
  const at::AutoDispatchBelowADInplaceOrView no_view_notes;
  Ring ring(flatten(sums, like), owners, communicator, tag);
  sums.clear();
  ring.scatter();
  ring.gather();
  return unflatten(ring.flat(), like);
}

}  // namespace frazil
