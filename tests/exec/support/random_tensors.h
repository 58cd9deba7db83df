#pragma once
// Random tensors by seed, lists of tensors compared bit for bit, and threads that play ranks.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "exec/communication/in_process_communicator.h"

namespace frazil {

class RandomTensors {
 public:
  explicit RandomTensors(std::uint64_t seed)
      : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

  at::Tensor draw(at::IntArrayRef shape) {
    return at::empty(shape, at::kFloat).normal_(0, 1, generator_);
  }

 private:
  at::Generator generator_;
};

inline bool same_tensors(const Tensors& a, const Tensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

inline Tensors copies_of(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// Runs `job` on a thread per communicator and waits for all; the first exception, by rank, is
// thrown here.
inline void run_ranks(const std::vector<std::unique_ptr<Communicator>>& communicators,
                      const std::function<void(Communicator&)>& job) {
  std::vector<std::exception_ptr> failures(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        job(*communicators[rank]);
      } catch (...) {
        failures[rank] = std::current_exception();
        communicators[rank]->abort("a rank failed");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace frazil
