#pragma once
// One of two processes with its ends of communicators of NCCL, whose every wait ends.

#include <chrono>
#include <functional>

#include "exec/communication/nccl_table.h"
#include "tests/gpu/pair_socket.h"

namespace frazil {

using Milliseconds = std::chrono::duration<double, std::milli>;

class NcclPair {
 public:
  NcclPair(const NcclTable& table, int rank, const PairSocket& socket)
      : table_(table), rank_(rank), socket_(socket) {}

  const NcclTable& table() const { return table_; }
  int rank() const { return rank_; }
  int peer() const { return 1 - rank_; }
  const PairSocket& socket() const { return socket_; }

  // Rank 0 makes the name, and both begin a communicator with it; it is not ready yet.
  NcclEnd begin() const;
  // Begins a communicator of this process alone.
  NcclEnd begin_alone() const;
  // Returns when the end is ready. Throws std::runtime_error at an error of NCCL, at the limit, and
  // PeerGone where the other process is.
  void wait_ready(NcclEnd end, bool heeds_peer = true) const;
  NcclEnd open() const;
  // Does a group of operations and returns the time until it is done. Throws as wait_ready().
  Milliseconds run(NcclEnd end, const std::function<void()>& operations,
                   bool heeds_peer = true) const;
  void close(NcclEnd end) const;  // both call it

 private:
  const NcclTable& table_;
  int rank_;
  const PairSocket& socket_;
};

Milliseconds since_start(std::chrono::steady_clock::time_point start);

}  // namespace frazil
