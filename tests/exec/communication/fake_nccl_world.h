#pragma once
// A world of threads whose tensors travel over the fake NCCL: every rank has a GPU of its own, and
// the threads' world beside it.

#include <memory>
#include <vector>

#include "exec/communication/in_process_communicator.h"
#include "exec/communication/nccl_communicator.h"
#include "tests/exec/communication/fake_nccl.h"

namespace frazil {

inline std::vector<std::unique_ptr<Communicator>> make_fake_nccl_communicators(
    int ranks, const CommunicatorOptions& options = {}) {
  std::vector<std::unique_ptr<Communicator>> communicators =
      make_in_process_communicators(ranks, options);
  for (int rank = 0; rank < ranks; ++rank) {
    auto& one = communicators[static_cast<std::size_t>(rank)];
    one = over_nccl(std::move(one), {.table = &fake_nccl(), .gpu = rank, .waits = options});
  }
  return communicators;
}

}  // namespace frazil
