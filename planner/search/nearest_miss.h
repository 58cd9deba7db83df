#pragma once
// Remembers the nearest miss while nothing fits: the shape that misses the least memory. If there
// is none, it is the first of the shapes that a schedule refuses whatever the memory.

#include <optional>
#include <tuple>

#include "planner/bounds/shape.h"
#include "planner/prediction/ranking.h"

namespace frazil {

class NearestMiss {
 public:
  void take(const Shape& shape, const Rejection& rejection) {
    const bool refused = rejection.why == Rejection::Why::kRefused;
    const Key key{refused, rejection.needed - rejection.available, shape};
    if (!key_ || key < *key_) key_ = key;
  }
  const Shape* shape() const { return key_ ? &std::get<Shape>(*key_) : nullptr; }
  Bytes missing() const { return key_ ? std::get<Bytes>(*key_) : Bytes{}; }
  bool misses_less_than(const Rejection& rejection) const {
    return key_ && !std::get<bool>(*key_) &&
           rejection.needed - rejection.available > std::get<Bytes>(*key_);
  }

 private:
  using Key = std::tuple<bool, Bytes, Shape>;
  std::optional<Key> key_;
};

}  // namespace frazil
