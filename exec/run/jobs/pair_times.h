#pragma once
// Measures what messages between two devices take, as the executor sends them, whatever lies
// between the devices: memory of one process, sockets, a network.

#include <cstdint>
#include <vector>

#include "exec/communication/communicator.h"
#include "exec/devices/compute_device.h"
#include "profiles/units.h"

namespace frazil {

// Two devices, and what is measured between them.
struct PairQuestion {
  DeviceId one{0};
  DeviceId other{1};
  std::vector<std::int64_t> sizes;  // of messages, in bytes, multiples of 4
  int repetitions = 0;              // of each size
  int reductions = 0;               // of kReducedBytes

  bool asks(DeviceId device) const { return device == one || device == other; }
};

struct PairTimes {
  std::vector<std::vector<Duration>> one_way;  // by size: half of each way there and back
  std::vector<Duration> reductions;            // exact ones, of which each device owns a half
};

// More than one core's near cache.
inline constexpr std::int64_t kReducedBytes = 1 << 20;

// Both devices call it, each in its thread. Returns what is measured on device `one`; nothing on
// the other. Throws as Communicator::receive().
PairTimes measure_pair(const PairQuestion& question, Communicator& self,
                       const ComputeDevice& device);

template <class A>
void archive(A& a, PairQuestion& q) {
  a(q.one, q.other, q.sizes, q.repetitions, q.reductions);
}
template <class A>
void archive(A& a, PairTimes& t) {
  a(t.one_way, t.reductions);
}

}  // namespace frazil
