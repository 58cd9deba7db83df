#include "profiles/cluster_presets.h"

#include <array>

namespace frazil {
namespace {

constexpr std::int64_t kGiga = 1'000'000'000;

// NCCL's hwLat in src/graph/tuning.cc, ring with protocol "simple": 3.4, 5.7 and 9.6 us.
constexpr Duration kNvlinkLatency{3'400};
constexpr Duration kPciLatency{5'700};
constexpr Duration kNetworkLatency{9'600};
constexpr std::string_view kNvlinkSource =
    "NCCL src/graph/tuning.cc (01afd20), ring, simple, NVLink: 3.4 us";
constexpr std::string_view kPciSource =
    "NCCL src/graph/tuning.cc (01afd20), ring, simple, PCI: 5.7 us";
constexpr std::string_view kNetworkSource =
    "NCCL src/graph/tuning.cc (01afd20), ring, simple, network: 9.6 us";

constexpr Bytes gigabytes(std::int64_t count) { return {count * kGiga}; }

// One direction of an NVLink or PCIe port whose data sheet gives both together.
constexpr Link half_of(std::int64_t gigabytes_per_second, Duration latency) {
  return {latency, {gigabytes_per_second * kGiga / 2}};
}

constexpr Link line_rate(std::int64_t gigabits_per_second) {
  return {kNetworkLatency, {gigabits_per_second * kGiga / 8}};
}

constexpr std::array kDevices = {
    DevicePreset{"v100-32g", gigabytes(32), 16, half_of(300, kNvlinkLatency),
                 "NVIDIA V100 and DGX-2 data sheets (NVSwitch): 32 GB, NVLink 300 GB/s in both "
                 "directions",
                 kNvlinkSource},
    DevicePreset{"a100-40g", gigabytes(40), 8, half_of(600, kNvlinkLatency),
                 "NVIDIA A100 data sheet (SXM): 40 GB, NVLink 600 GB/s in both directions",
                 kNvlinkSource},
    DevicePreset{"a100-80g", gigabytes(80), 8, half_of(600, kNvlinkLatency),
                 "NVIDIA A100 data sheet (SXM): 80 GB, NVLink 600 GB/s in both directions",
                 kNvlinkSource},
    DevicePreset{"h100-sxm", gigabytes(80), 8, half_of(900, kNvlinkLatency),
                 "NVIDIA H100 data sheet (SXM): 80 GB, NVLink 900 GB/s in both directions",
                 kNvlinkSource},
    DevicePreset{"h200-sxm", gigabytes(141), 8, half_of(900, kNvlinkLatency),
                 "NVIDIA H200 data sheet (SXM): 141 GB, NVLink 900 GB/s in both directions",
                 kNvlinkSource},
    DevicePreset{"l4", gigabytes(24), 8, half_of(64, kPciLatency),
                 "NVIDIA L4 data sheet: 24 GB, PCIe Gen4 x16 64 GB/s in both directions",
                 kPciSource},
    DevicePreset{"l40s", gigabytes(48), 8, half_of(64, kPciLatency),
                 "NVIDIA L40S data sheet: 48 GB, PCIe Gen4 x16 64 GB/s in both directions",
                 kPciSource},
};

constexpr std::array kLinks = {
    LinkPreset{"ethernet-10", line_rate(10), "IEEE 802.3ae: 10 Gb/s line rate", kNetworkSource},
    LinkPreset{"ethernet-25", line_rate(25), "IEEE 802.3by: 25 Gb/s line rate", kNetworkSource},
    LinkPreset{"ethernet-100", line_rate(100), "IEEE 802.3bj: 100 Gb/s line rate", kNetworkSource},
    LinkPreset{"infiniband-edr", line_rate(100), "InfiniBand EDR 4x: 100 Gb/s data rate",
               kNetworkSource},
    LinkPreset{"infiniband-hdr", line_rate(200), "InfiniBand HDR 4x: 200 Gb/s data rate",
               kNetworkSource},
    LinkPreset{"infiniband-ndr", line_rate(400), "InfiniBand NDR 4x: 400 Gb/s data rate",
               kNetworkSource},
};

}  // namespace

std::span<const DevicePreset> all_device_presets() { return kDevices; }

std::span<const LinkPreset> all_link_presets() { return kLinks; }

}  // namespace frazil
