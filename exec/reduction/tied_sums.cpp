#include "exec/reduction/tied_sums.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "exec/tensors/tensor_bytes.h"
#include "planner/plan/tied_exchanges.h"

namespace frazil {
namespace {

bool is_alone(const Tensors& sum) {
  return sum.at(0).use_count() == 1 && sum.at(0).storage().use_count() == 1;
}

// The total is added up in the place of a sum of this device if nobody else reads that sum.
struct Total {
  at::Tensor tensor;
  bool may_write = false;
  bool is_here = false;  // the tensor is one of the sums
};

// Gives each use of this device the total. `alone`: uses whose sum nobody else reads, which are
// overwritten. One of the remaining uses may have the total itself.
void hand_out(const Total& total, const std::set<LayerId>& alone, const TiedUses& uses,
              std::map<LayerId, Tensors>& sums, const TellHeld& tell_held) {
  std::int64_t own_bytes = 0;
  for (const LayerId layer : uses.layers) {
    if (sums.contains(layer)) own_bytes += count_bytes(sums.at(layer));
  }
  bool is_free = !total.is_here;
  for (const LayerId layer : uses.layers) {
    const auto own = sums.find(layer);
    if (own == sums.end() || own->second.at(0).is_same(total.tensor)) continue;
    if (alone.contains(layer)) {
      own->second.at(0).copy_(total.tensor);
    } else {
      const bool takes_total = std::exchange(is_free, false);
      if (!takes_total) tell_held(own_bytes + count_bytes({total.tensor}));
      own->second = {takes_total ? total.tensor : total.tensor.clone()};
    }
  }
}

}  // namespace

void add_tied_uses(const TiedUses& uses, const Plan& plan, DeviceId device, Step step,
                   Communicator& communicator, std::map<LayerId, Tensors>& sums,
                   const TellHeld& tell_held) {
  const c10::NoGradGuard no_grad;
  const auto tag_of = [&](LayerId layer) {
    return Tag{.kind = MessageKind::kTiedSum, .index = layer.value, .step = step};
  };
  std::map<LayerId, DeviceId> sources;  // devices that send the uses that this device lacks
  std::set<LayerId> alone;
  std::int64_t own_bytes = 0;
  for (const LayerId layer : uses.layers) {
    const auto own = sums.find(layer);
    if (own == sums.end()) continue;
    own_bytes += count_bytes(own->second);
    if (is_alone(own->second)) alone.insert(layer);
  }
  // Sent in the order in which sums are added, which is that in which they are awaited.
  std::vector<TiedMessage> messages = find_tied_messages(plan, uses.layers);
  std::reverse(messages.begin(), messages.end());
  for (const TiedMessage& message : messages) {
    if (message.from == device) {
      communicator.send(message.to.value, tag_of(message.layer), sums.at(message.layer));
      alone.erase(message.layer);
    }
    if (message.to == device) sources.emplace(message.layer, message.from);
  }
  Total total;
  for (auto use = uses.layers.rbegin(); use != uses.layers.rend(); ++use) {
    const LayerId layer = *use;
    const auto source = sources.find(layer);
    const bool is_here = source == sources.end();
    const at::Tensor sum = is_here
                               ? sums.at(layer).at(0)
                               : communicator.receive(source->second.value, tag_of(layer)).at(0);
    const bool is_first = !total.tensor.defined();
    const bool makes_new = !is_first && !total.may_write;
    tell_held(own_bytes + (is_first || total.is_here ? 0 : count_bytes({total.tensor})) +
              (is_here ? 0 : count_bytes({sum})) + (makes_new ? count_bytes({sum}) : 0));
    if (is_first) {
      total = {sum, alone.contains(layer), is_here};
    } else if (makes_new) {
      total = {at::add(total.tensor, sum), true, false};
    } else {
      total.tensor.add_(sum);
    }
  }
  hand_out(total, alone, uses, sums, tell_held);
}

}  // namespace frazil
