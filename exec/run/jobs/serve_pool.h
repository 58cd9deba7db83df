#pragma once
// A member of a run over processes does what the leader asks of all devices.

#include <cstdint>
#include <functional>
#include <vector>

#include "exec/control/control_member.h"
#include "exec/run/device_pool.h"
#include "exec/run/run.h"
#include "exec/tensors/sample_range.h"

namespace frazil {

// What a member makes itself, as the leader does, of the configuration that both have.
struct MemberSource {
  std::function<std::vector<Samples>(const SampleRange&)> micro_batches;
  std::function<std::vector<std::int64_t>(const SampleRange&)> cache_numbers;
  std::function<const SampleSource&(SamplePart)> part;
  RunWorld::Join join;
  RunWorld::Connect connect = {};
  // Prepares the samples of the next step in the background; none: they are made when asked for.
  std::function<void(const SampleRange&)> expect = {};
};

// Serves until the leader dismisses this member, and returns how. Throws PeerLost if the leader is
// lost. A job that fails is told to the leader and ends nothing here.
StopMessage serve(DevicePool& pool, ControlMember& member, const MemberSource& source,
                  const RunOptions& options);

}  // namespace frazil
