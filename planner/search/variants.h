#pragma once
// The variants of cells, listed once for all cells that have the same variants.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "planner/bounds/shape.h"

namespace frazil {

struct VariantList {
  std::vector<ShapeVariant> variants;  // list_variants()
  std::vector<VariantClass> class_of;  // by variant

  struct Class {
    VariantClass what;
    int first = 0;  // its first variant
    std::int64_t variants = 0;
  };
  std::vector<Class> classes;  // ascending
};

class Variants {
 public:
  // The space must outlive this.
  explicit Variants(const SearchSpace& space) : space_(space) {}

  const VariantList& of(const ShapeCell& cell);

 private:
  const SearchSpace& space_;
  std::map<std::tuple<int, bool, std::int64_t>, VariantList> lists_;
};

}  // namespace frazil
