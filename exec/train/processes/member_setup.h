#pragma once
// What a leader tells a new member of its run first: all that the member needs to make the same
// model, data and devices by itself.

#include <cstdint>
#include <string>
#include <vector>

#include "exec/control/wire.h"
#include "exec/devices/compute_device.h"

namespace frazil {

struct MemberSetup {
  std::string config;  // the run configuration, as its file
  DeviceKind kind = DeviceKind::kCpu;
  std::vector<int> gpus;
  std::vector<int> process_of;    // by device
  bool has_core_per_rank = true;  // of the machine; then each process keeps to its own cores
  std::uint64_t data_hash = 0;
  std::string files;            // describe_files(config)
  std::string kernels;          // describe(present_kernels())
  std::uint16_t gloo_port = 0;  // where they meet by Gloo; 0: tensors go over sockets of our own
  bool speaks_nccl = false;     // which tensors between GPUs go over instead
};

template <>
struct WireEnum<DeviceKind> {
  static constexpr DeviceKind last = DeviceKind::kCuda;
};

template <class A>
void archive(A& a, MemberSetup& s) {
  a(s.config, s.kind, s.gpus, s.process_of, s.has_core_per_rank, s.data_hash, s.files, s.kernels,
    s.gloo_port, s.speaks_nccl);
}

}  // namespace frazil
