// A header comes from another process: it is read as it was packed, and anything else is refused.

#include "exec/communication/nccl_header.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>

#include "profiles/error.h"

namespace frazil {
namespace {

NcclHeader make_header() {
  NcclHeader header{.order = 41, .id = NcclId{}, .tensors = {}};
  for (std::size_t b = 0; b < header.id->bytes.size(); ++b) {
    header.id->bytes[b] = static_cast<char>(b * 7);
  }
  header.tensors = {{.by_nccl = true, .type = at::kBFloat16, .sizes = {3, 0, 5}},
                    {.by_nccl = false},
                    {.by_nccl = true, .type = at::kLong, .sizes = {}}};
  return header;
}

void expect_equal(const NcclHeader& a, const NcclHeader& b) {
  EXPECT_EQ(a.order, b.order);
  ASSERT_EQ(a.id.has_value(), b.id.has_value());
  if (a.id) {
    EXPECT_EQ(a.id->bytes, b.id->bytes);
  }
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    EXPECT_EQ(a.tensors[t].by_nccl, b.tensors[t].by_nccl);
    if (!a.tensors[t].by_nccl) continue;
    EXPECT_EQ(a.tensors[t].type, b.tensors[t].type);
    EXPECT_EQ(a.tensors[t].sizes, b.tensors[t].sizes);
  }
}

TEST(NcclHeader, IsReadAsItWasPacked) {
  NcclHeader header = make_header();
  expect_equal(unpack_header(pack(header)), header);
  header.id.reset();
  expect_equal(unpack_header(pack(header)), header);
  expect_equal(unpack_header(pack({})), {});
}

TEST(NcclHeader, OfAnythingElseIsRefused) {
  EXPECT_THROW((void)unpack_header({}), PeerLost);
  EXPECT_THROW((void)unpack_header(at::ones({8})), PeerLost);
  EXPECT_THROW((void)unpack_header(at::ones({2, 4}, at::kLong)), PeerLost);
  const at::Tensor packed = pack(make_header());
  for (std::int64_t end = 0; end < packed.numel(); ++end) {
    EXPECT_THROW((void)unpack_header(packed.narrow(0, 0, end).clone()), PeerLost) << end;
  }
  EXPECT_THROW((void)unpack_header(at::cat({packed, at::zeros({1}, at::kLong)})), PeerLost);
}

TEST(NcclHeader, WithAnyNumberChangedIsReadOrRefused) {
  const unsigned seed = 20261126;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const at::Tensor packed = pack(make_header());
  for (int trial = 0; trial < 20000; ++trial) {
    at::Tensor changed = packed.clone();
    const auto place = static_cast<std::int64_t>(random()) % packed.numel();
    const auto value = static_cast<std::int64_t>(random() >> (random() % 64));
    changed[std::abs(place)] = value;
    try {
      const NcclHeader read = unpack_header(changed);
      EXPECT_LE(read.tensors.size(), 3U);
    } catch (const PeerLost&) {
    }
  }
}

}  // namespace
}  // namespace frazil
