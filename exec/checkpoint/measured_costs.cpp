#include "exec/checkpoint/measured_costs.h"

#include "exec/disk/hashes.h"

namespace frazil {

std::uint64_t hash_costs(Setting setting) {
  std::string text;
  const auto add = [&text](std::int64_t number) { text += std::to_string(number) + " "; };
  for (const Layer& layer : setting.profile().layers) {
    for (const CostSample& cost : layer.costs) {
      add(cost.micro_batch_size);
      for (const Duration time : {cost.forward, cost.forward_frozen, cost.backward_input,
                                  cost.backward_weight, cost.backward_weight_alone}) {
        add(time.count());
      }
    }
    text += "\n";
  }
  for (const Device& device : setting.cluster().devices) add(device.time_ppm);
  return hash_text(text);
}

}  // namespace frazil
