#pragma once
// Worlds whose tensors travel over the fake NCCL: every rank has a GPU of its own, and another
// world beside it.

#include <memory>
#include <vector>

#include "exec/communication/in_process_communicator.h"
#include "exec/communication/nccl_communicator.h"
#include "tests/exec/communication/fake_nccl.h"

namespace frazil {

// Returns the ranks of `hosts` with the fake NCCL for their tensors, rank r on GPU r.
inline std::vector<std::unique_ptr<Communicator>> over_fake_nccl(
    std::vector<std::unique_ptr<Communicator>> hosts, const CommunicatorOptions& options = {}) {
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    hosts[rank] = over_nccl(
        std::move(hosts[rank]),
        {.table = &fake_nccl(), .gpu = static_cast<int>(rank), .peers = {}, .waits = options});
  }
  return hosts;
}

inline std::vector<std::unique_ptr<Communicator>> make_fake_nccl_communicators(
    int ranks, const CommunicatorOptions& options = {}) {
  return over_fake_nccl(make_in_process_communicators(ranks, options), options);
}

}  // namespace frazil
