#include "exec/links/checksum.h"

#include <array>
#include <cstring>

namespace frazil {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    table[byte] = sum;
  }
  return table;
}

std::uint32_t add_by_table(const unsigned char* data, std::size_t bytes, std::uint32_t sum) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_table();
  for (std::size_t i = 0; i < bytes; ++i) sum = (sum >> 8) ^ kTable[(sum ^ data[i]) & 0xff];
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t add_by_instruction(const unsigned char* data,
                                                                   std::size_t bytes,
                                                                   std::uint32_t sum) {
  std::uint64_t wide = sum;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  sum = static_cast<std::uint32_t>(wide);
  for (; bytes > 0; ++data, --bytes) sum = __builtin_ia32_crc32qi(sum, *data);
  return sum;
}
#endif

std::uint32_t add(const unsigned char* data, std::size_t bytes, std::uint32_t sum) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return add_by_instruction(data, bytes, sum);
#endif
  return add_by_table(data, bytes, sum);
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
  return ~add(static_cast<const unsigned char*>(data), bytes, ~before);
}

}  // namespace frazil
