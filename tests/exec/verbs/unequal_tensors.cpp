// This library is loaded before a program. The first comparison of two tensors finds them
// different, as on a machine that breaks a rule of equal bits; every later one finds them equal.

#include <atomic>

namespace at {

class Tensor;

namespace _ops {

struct equal {
  static bool call(const Tensor& self, const Tensor& other);
};

bool equal::call(const Tensor&, const Tensor&) {
  static std::atomic<bool> is_later = false;
  return is_later.exchange(true);
}

}  // namespace _ops
}  // namespace at
