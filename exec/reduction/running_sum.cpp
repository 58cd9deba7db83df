#include "exec/reduction/running_sum.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "profiles/error.h"

namespace frazil {

void RunningSum::add(Tensors gradients) {
  if (sum_.empty()) {
    sum_ = std::move(gradients);
    return;
  }
  ENSURE(gradients.size() == sum_.size(), "every micro-batch has as many gradients");
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    if (sum_[i].use_count() == 1 && sum_[i].storage().use_count() == 1) {
      sum_[i].add_(gradients[i]);
    } else {
      sum_[i] = at::add(sum_[i], gradients[i]);
    }
  }
}

Tensors RunningSum::take() { return std::exchange(sum_, {}); }

}  // namespace frazil
