#pragma once
// clang-format off
// PipeTransformer's machine park (He et al. 2021): two hosts with eight Quadro RTX 5000 of 16 GB
// each, PCIe 3.0 x16 within a host, InfiniBand between the hosts, 32-bit floats. The profiles of
// its models on this park follow from a few measured numbers. A unit's share of the model's time is
// its share of the multiply-adds, and each unit costs the same to start.
//   forward    ViT-B/16, frozen, on one device: 471 ms for 64 samples, 2313 ms for 320; so 10.5 ms
//              to start the whole model and 7.195 ms per sample
//   backward   1.65 x forward: with that forward, 52 samples/s per device in plain data parallelism
//   memory     60 samples fit a device in plain data parallelism, 64 do not: what a sample keeps
//              for the backward is the room beside parameters, gradients and momentum over 63
//   update     five passes over parameters, gradients and momentum at the device's 448 GB/s
//   links      15.754 and 5 GB/s; latencies are left out
//   cache      2.2 GB/s of cached features per host with eight processes that each copy for
//              themselves, the plateau of Fig. 9; each process reads an eighth of that rate,
//              however many processes there are. Its read copies three times (segment, batch,
//              device), of which a write does one, to the CPU, in the training process; the daemon
//              does the others meanwhile. So a process writes at three times the rate: this is not
//              fitted, and the epochs of Fig. 9 that write test it
//   launches   1.4 ms for the forward of a unit in a pipeline's interpreter
//              (planner/reproduce/launches.h), from 286 samples/s with 48 micro-batches, Fig. 11
// Result rows from which a number was taken are marked as calibration (RowRole::kCalibration).
// clang-format on

#include "planner/named/pipe_transformer_models.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

inline constexpr Duration kLaunchOfALayer{1'400'000};
inline constexpr Bytes kRtx5000Memory{std::int64_t{16} << 30};
inline constexpr Bytes kRtx5000Context{std::int64_t{867} << 20};  // per process and device
inline constexpr BytesPerSecond kCacheOfAHost{2'200'000'000};

// Makes the cluster. `rings` is the number of all-reduces that share the one InfiniBand adapter of
// a host, as those of the stages of a pipeline do; each gets its share of the bandwidth.
Cluster make_rtx5000_cluster(int devices_per_host, int rings, int hosts = 2);

// Makes a profile whose blocks are the embedding, one per layer, and the head.
ModelProfile make_rtx5000_vision(const VisionShape& shape);
ModelProfile make_rtx5000_bert(const BertShape& shape, BertTask task, int sequence);

// Returns the profile where the features behind `layers` frozen layers come from the cache: the
// embedding and these layers become one layer that reads the features (block 0). Requires:
// 1 <= layers <= L.
ModelProfile read_from_cache(const ModelProfile& profile, int layers);

// Returns the profile where the outputs of the last layer of block `block` are written to the cache
// before the next layer begins. Requires: that block is frozen.
ModelProfile write_to_cache(const ModelProfile& profile, BlockId block);

// Returns the profile where frozen layers run `samples` samples at once, ahead of their pipeline,
// so that the micro-batches share the cost of starting the layers.
ModelProfile run_frozen_at_once(const ModelProfile& profile, int samples);

}  // namespace frazil
