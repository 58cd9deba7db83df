#include "exec/reduction/ring_reduction.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "exec/tensors/tensor_bytes.h"
#include "profiles/error.h"

namespace frazil {
namespace {

// Returns the sums in one flat buffer, so that shares are equal up to rounding whatever the
// tensors' sizes.
at::Tensor flatten(const Tensors& sums, const Tensors& like) {
  Tensors flat;
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : like) elements += tensor.numel();
  for (const at::Tensor& sum : sums) flat.push_back(sum.reshape(-1));
  return flat.empty() ? at::zeros({elements}, like.at(0).options().requires_grad(false))
                      : at::cat(flat);
}

// Copies a share into elements [first, first + its size) of the flattened tensors.
void paste_share(const at::Tensor& share, std::int64_t first, const Tensors& into) {
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : into) {
    const std::int64_t from = std::max(first, offset);
    const std::int64_t to = std::min(first + share.numel(), offset + tensor.numel());
    if (from < to) {
      tensor.view(-1)
          .narrow(0, from - offset, to - from)
          .copy_(share.narrow(0, from - first, to - from));
    }
    offset += tensor.numel();
  }
}

std::vector<int> ranks_of(const std::vector<DeviceId>& owners) {
  std::vector<int> ranks;
  ranks.reserve(owners.size());
  for (const DeviceId owner : owners) ranks.push_back(owner.value);
  return ranks;
}

class Ring {
 public:
  Ring(at::Tensor flat, const std::vector<DeviceId>& owners, Communicator& communicator, Tag tag,
       const TellHeld& tell_held)
      : communicator_(communicator),
        tag_(tag),
        tell_held_(tell_held),
        flat_(std::move(flat)),
        elements_(flat_.numel()),
        size_(static_cast<int>(owners.size())) {
    const auto self = std::find(owners.begin(), owners.end(), DeviceId{communicator.rank()});
    ENSURE(self != owners.end(), "an owner takes part in its layers' reduction");
    place_ = static_cast<int>(self - owners.begin());
    next_ = owners[static_cast<std::size_t>((place_ + 1) % size_)].value;
    previous_ = owners[static_cast<std::size_t>((place_ + size_ - 1) % size_)].value;
  }

  // Completes share (place + 1) on this device. A share is added to only before it is sent.
  void scatter() {
    tag_.kind = MessageKind::kGradientNodes;
    for (int round = 0; round < size_ - 1; ++round) {
      tag_.from = round;
      send(share(place_ - round));
      const at::Tensor came = receive();
      tell({flat_, came}, {});
      share(place_ - round - 1).add_(came);
    }
  }

  // Gathers all shares into `complete`. Frees the buffer first, but for the share that is complete
  // here.
  void gather(const Tensors& complete) {
    tag_.kind = MessageKind::kGradientSum;
    const at::Tensor own = share(place_ + 1).clone();
    flat_.reset();
    paste_share(own, first_of(place_ + 1), complete);
    at::Tensor share = own;
    for (int round = 0; round < size_ - 1; ++round) {
      tag_.from = round;
      send(share);
      share = receive();
      tell({own, share}, complete);
      paste_share(share, first_of(place_ - round), complete);
    }
  }

 private:
  int wrap(int index) const { return (index % size_ + size_) % size_; }
  std::int64_t first_of(int index) const { return elements_ * wrap(index) / size_; }
  at::Tensor share(int index) const {
    const std::int64_t first = first_of(index);
    return flat_.narrow(0, first, elements_ * (wrap(index) + 1) / size_ - first);
  }
  void send(const at::Tensor& share) { communicator_.send(next_, tag_, {share}); }
  at::Tensor receive() { return communicator_.receive(previous_, tag_).at(0); }
  void tell(const Tensors& buffers, const Tensors& complete) const {
    if (tell_held_) tell_held_(count_bytes(buffers) + count_bytes(complete));
  }

  Communicator& communicator_;
  Tag tag_;
  const TellHeld& tell_held_;
  at::Tensor flat_;
  std::int64_t elements_;
  int size_;
  int place_ = 0;
  int next_ = 0;
  int previous_ = 0;
};

}  // namespace

Tensors reduce_in_ring(Tensors sums, const Tensors& like, const std::vector<DeviceId>& owners,
                       Communicator& communicator, Tag tag, const TellHeld& tell_held) {
  const c10::NoGradGuard no_grad;
  // The slices are plain: autograd's notes on views would tie shares of one thread to a buffer of
  // another.
  const at::AutoDispatchBelowADInplaceOrView no_view_notes;
  at::Tensor flat = flatten(sums, like);
  if (tell_held) tell_held(count_bytes(sums) + count_bytes({flat}));
  sums.clear();
  Tensors complete;
  complete.reserve(like.size());
  const auto make_complete = [&] {
    for (const at::Tensor& tensor : like) {
      complete.push_back(at::empty(tensor.sizes(), tensor.options().requires_grad(false)));
    }
  };
  tag.kind = MessageKind::kGradientSum;
  if (communicator.sum_in_group(flat, ranks_of(owners), tag)) {
    make_complete();
    if (tell_held) tell_held(count_bytes(complete) + count_bytes({flat}));
    paste_share(flat, 0, complete);
    return complete;
  }
  Ring ring(std::move(flat), owners, communicator, tag, tell_held);
  ring.scatter();
  make_complete();
  ring.gather(complete);
  return complete;
}

}  // namespace frazil
