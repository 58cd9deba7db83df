#pragma once
// PipeTransformer's machine park (He et al. 2021): two hosts of eight Quadro RTX 5000 with 16 GB,
// PCIe 3.0 x16 within a host, InfiniBand between them, 32-bit floats; and its models there, from a
// few measured numbers. A unit's share of the model's time is its share of the multiply-adds, and
// each unit costs the same to start.
//   forward    ViT-B/16, frozen, on one device: 471 ms for 64 samples, 2313 ms for 320; so 10.5 ms
//              to start the whole model and 7.195 ms per sample
//   backward   1.65 x forward: with that forward, 52 samples/s per device in plain data parallelism
//   memory     60 samples fit a device in plain data parallelism, 64 do not: what a sample keeps
//              for the backward is the room beside parameters, gradients and momentum over 63
//   update     five passes over parameters, gradients and momentum at the device's 448 GB/s
//   links      15.754 and 5 GB/s; latencies are left out
//   cache      2.2 GB/s of cached features per host with eight processes that each copy for
//              themselves, the plateau of Fig. 9; a process reads an eighth of it at any number
//   launches   1.4 ms for the forward of a unit in a pipeline's interpreter
//              (planner/reproduce/launches.h), from 286 samples/s with 48 micro-batches, Fig. 11
// Rows that a number was taken from are marked as calibration where they are compared.

#include "planner/named/pipe_transformer_models.h"
#include "profiles/cluster.h"
#include "profiles/model_profile.h"

namespace frazil {

inline constexpr Duration kLaunchOfALayer{1'400'000};

// `rings`: all-reduces that share a host's one InfiniBand adapter, as the stages of a pipeline do.
Cluster make_rtx5000_cluster(int devices_per_host, int rings, int hosts = 2);

// Blocks: embedding, one per layer, head.
ModelProfile make_rtx5000_vision(const VisionShape& shape);
ModelProfile make_rtx5000_bert(const BertShape& shape, BertTask task, int sequence);

// What training costs when the features behind `layers` frozen layers come from the cache:
// embedding and these layers become one layer that reads them (block 0). Requires: 1 <= layers <=
// L.
ModelProfile read_from_cache(const ModelProfile& profile, int layers);

// Where frozen layers run `samples` at once, ahead of their pipeline: micro-batches share the cost
// of starting them.
ModelProfile run_frozen_at_once(const ModelProfile& profile, int samples);

}  // namespace frazil
