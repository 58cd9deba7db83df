#include "planner/search/variants.h"

#include <algorithm>

namespace frazil {

const VariantList& Variants::of(const ShapeCell& cell) {
  const int micro_batches = space_.micro_batches(cell.micro_batch_size);
  const int share = divide_up(micro_batches, cell.replicas);
  const auto [known, is_new] =
      lists_.try_emplace({cell.devices, cell.longer > 0, reach_of_depths(cell.devices, share)});
  VariantList& list = known->second;
  if (!is_new) return list;
  list.variants = list_variants(cell, space_);
  std::map<VariantClass, VariantList::Class> classes;
  for (std::size_t v = 0; v < list.variants.size(); ++v) {
    const VariantClass own = class_of(list.variants[v]);
    list.class_of.push_back(own);
    const VariantList::Class fresh{own, static_cast<int>(v), 0};
    ++classes.try_emplace(own, fresh).first->second.variants;
  }
  for (const auto& [what, of_class] : classes) list.classes.push_back(of_class);
  return list;
}

}  // namespace frazil
