#pragma once
// A world in which the tensors of GPUs travel over NCCL, and all else (headers, barriers, aborts,
// who waits for whom, host tensors) by another world that the ranks have beside it.
//
// Each sender, receiver and lane has a connection of its own: a communicator of two ranks on a
// stream of its own, made with its first message. So a send waits for its receiver without holding
// anything else up, and what has to agree is only what must anyway: within a lane the receiver
// takes messages in the order in which they are sent. NCCL knows no other order; a schedule that
// takes them by tag is refused (planner/actions/message_order.h makes the orders that can be run).

#include <memory>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/communication/nccl_table.h"

namespace frazil {

struct NcclOptions {
  const NcclTable* table = nullptr;  // outlives the process's threads
  int gpu = 0;                       // of this rank
  at::Device place = at::kCPU;       // where tensors are received
  // Ranks that are reached over NCCL, and reach this one so; empty: all. Others, such as those of
  // the same process, are reached by the other world alone.
  std::vector<bool> peers = {};
  int most_blocks = 0;             // as NcclPlace's
  CommunicatorOptions waits = {};  // its limits
};

// Returns a rank of such a world over the other one, `host`, whose every send and receive takes
// what is no tensor of a GPU. Throws nothing.
std::unique_ptr<Communicator> over_nccl(std::unique_ptr<Communicator> host,
                                        const NcclOptions& options);

}  // namespace frazil
