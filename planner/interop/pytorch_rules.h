#pragma once
// clang-format off
// The rules of torch.distributed.pipelining (PyTorch 2.11) for the rows of a schedule. Row r lists
// the actions of rank r in one pipeline with stages 0..S-1 and micro-batches 0..m-1. The rules come
// from PyTorch's check (_validate_schedule) and from the assumptions of its runtime:
//   - Every stage is on one rank, and every rank has a stage.
//   - Every stage has one F for every micro-batch, and then one B, or one I (dgrad) and after it
//     one W (wgrad).
//   - A stage that reads from a stage on its own rank comes after the action that makes the data;
//     such pairs have no messages.
//   - compute_comms: between ranks there is one SEND after the action that makes the data, and one
//     RECV before the action that needs the data. A REDUCE_GRAD, where given, comes once and after
//     all backwards of its stage.
// clang-format on

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planner/actions/schedule.h"

namespace frazil {

enum class PytorchDialect : std::uint8_t {
  kComputeOnly,   // F B I W OVERLAP_F_B; PyTorch adds all other actions itself
  kComputeComms,  // with SEND_F RECV_F SEND_B RECV_B REDUCE_GRAD UNSHARD RESHARD; run as given
};

struct PytorchShape {
  int stages = 0;
  int micro_batches = 0;
  std::vector<DeviceId> rank_of_stage;
};

// Reports a broken rule: the rank (from 0), what was found there and what was expected. Must throw.
using RowComplaint =
    std::function<void(std::size_t rank, const std::string& found, const std::string& expected)>;

// Returns both halves of a pair, or the action alone.
std::span<const Action> parts_of(const Action& action);

// Returns the shape of the rows. Calls `complain` for the first broken rule. Requires: only actions
// of the dialect and of pipeline 0, each of one micro-batch or of a whole stage, without slice and
// without peer.
PytorchShape check_pytorch_rows(const Schedule& rows, PytorchDialect dialect,
                                const RowComplaint& complain);

// Checks the order of messages. PyTorch's p2p has no tags, so the k-th RECV from a rank takes
// exactly the k-th message that this rank sends to the receiver. Calls `complain` for the first
// RECV that would take another message. Requires: rows that passed check_pytorch_rows as
// kComputeComms.
void check_message_pairs(const Schedule& rows, const PytorchShape& shape,
                         const RowComplaint& complain);

}  // namespace frazil
