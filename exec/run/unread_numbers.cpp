#include "exec/run/unread_numbers.h"

#include <ATen/ATen.h>

#include <cstddef>
#include <utility>

namespace frazil {

void UnreadNumbers::clear() {
  numbers_.clear();
  takers_.clear();
  here_.reset();
}

void UnreadNumbers::add(at::Tensor number, Take take) {
  numbers_.push_back(number.detach().to(at::kDouble));
  takers_.push_back(std::move(take));
}

void UnreadNumbers::fetch(const GpuLanes& lanes) {
  if (!numbers_.empty()) here_ = lanes.download(at::stack(numbers_));
}

void UnreadNumbers::deliver() {
  const double* const values = here_.defined() ? here_.const_data_ptr<double>() : nullptr;
  for (std::size_t i = 0; i < takers_.size(); ++i) takers_[i](values[i]);
  clear();
}

}  // namespace frazil
