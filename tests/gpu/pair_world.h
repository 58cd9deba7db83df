#pragma once
// The world beside NCCL for two processes of a test: messages of host tensors, one after another,
// over one socket.

#include <memory>

#include "exec/communication/communicator.h"
#include "tests/gpu/pair_socket.h"

namespace frazil {

// The socket must outlive the communicator.
std::unique_ptr<Communicator> make_pair_world(int rank, const PairSocket& socket);

}  // namespace frazil
