#pragma once
// What torch.distributed.pipelining (PyTorch 2.11) demands of the rows of a schedule: row r is what
// rank r does of one pipeline, stages 0..S-1, micro-batches 0..m-1. From its check
// (_validate_schedule) and from what its runtime takes for granted:
//   every stage on one rank, every rank with a stage
//   in every stage for every micro-batch one F, after it one B, or one I and then one W
//   what a stage reads from one on its own rank has been computed there; there are no messages
//   compute_comms: from one rank to another a SEND after what makes it and a RECV before what needs
//   it, each once; REDUCE_GRAD, where it is given, once and after all backwards of its stage

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planner/actions/schedule.h"

namespace frazil {

enum class PytorchDialect : std::uint8_t {
  kComputeOnly,   // F B I W OVERLAP_F_B; PyTorch adds the rest itself
  kComputeComms,  // with SEND_F RECV_F SEND_B RECV_B REDUCE_GRAD UNSHARD RESHARD; run as it stands
};

struct PytorchShape {
  int stages = 0;
  int micro_batches = 0;
  std::vector<DeviceId> rank_of_stage;
};

// Told the rank (from 0), what was found there and what was expected. Must throw.
using RowComplaint =
    std::function<void(std::size_t rank, const std::string& found, const std::string& expected)>;

// Both halves of a pair, or the action alone.
std::span<const Action> parts_of(const Action& action);

// Complains about the first rule that is broken. Requires: only actions of the dialect, each of one
// micro-batch or of a whole stage, of pipeline 0, without slice and peer.
PytorchShape check_pytorch_rows(const Schedule& rows, PytorchDialect dialect,
                                const RowComplaint& complain);

// PyTorch's p2p has no tags: the k-th RECV from a rank takes what that rank sends as the k-th, and
// no other. Requires rows that passed the check above as kComputeComms.
void check_message_pairs(const Schedule& rows, const PytorchShape& shape,
                         const RowComplaint& complain);

}  // namespace frazil
