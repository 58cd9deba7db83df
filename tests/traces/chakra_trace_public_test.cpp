// Compares our names with Chakra traces of MLCommons that nobody here wrote, in JSON: eight GPUs'
// data-parallel training, as Chakra's own converter made them. Our files must use the same names.

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/support/protobuf_fields.h"
#include "traces/chakra_trace.h"

namespace frazil {
namespace {

std::string unpack_gzip(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file(gzopen(path.c_str(), "rb"), gzclose);
  std::string text;
  if (file == nullptr) return text;
  std::string buffer(std::size_t{1} << 20, '\0');
  for (int count = 1; count > 0;) {
    count = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (count > 0) text.append(buffer, 0, static_cast<std::size_t>(count));
  }
  return text;
}

// Finds a member of a tar file: 512 bytes of header (name, at 124 the size in octal), then its
// bytes, padded to a multiple of 512.
std::string_view find_member(std::string_view tar, std::string_view name) {
  constexpr std::size_t kBlock = 512;
  while (tar.size() >= kBlock && tar.front() != '\0') {
    const std::size_t size = std::stoul(std::string(tar.substr(124, 11)), nullptr, 8);
    if (tar.starts_with(name) && tar[name.size()] == '\0') return tar.substr(kBlock, size);
    tar.remove_prefix(std::min(tar.size(), kBlock + (size + kBlock - 1) / kBlock * kBlock));
  }
  return {};
}

std::uint64_t type_number(const ChakraNode& node) {
  std::string file;
  append_chakra_node(file, node);
  std::string_view rest = file;
  for (const ProtobufField& field : read_fields(take_delimited(rest))) {
    if (field.number == 3) return field.value;
  }
  return 0;
}

// The trace's collectives have our collectives' node type, and all other nodes are compute; every
// node says whether the host runs it, as ours do, and waits for nodes by their ids.
TEST(ChakraPublicTrace, CallsThingsAsWeDo) {
  const std::filesystem::path path = std::filesystem::path(FRAZIL_SOURCE_FOLDER) / ".." / "shared" /
                                     "data" / "chakra" / "json_trace.tar.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the public Chakra traces are not at hand";
  const std::string tar = unpack_gzip(path);
  const auto trace = nlohmann::json::parse(find_member(tar, "jsonData/chakra.0.json"));
  const std::uint64_t compute = type_number({.id = 1, .name = "0F0"});
  const std::uint64_t collective =
      type_number({.id = 1, .name = "0REDUCE_GRAD", .work = ChakraCollective{}});
  int collectives = 0;
  for (const auto& node : trace.at("workload_graph")) {
    const auto name = node.at("Name").get<std::string>();
    const bool is_collective = name.starts_with("ncclKernel_") || name.starts_with("c10d::");
    collectives += is_collective ? 1 : 0;
    EXPECT_EQ(node.at("NodeType").get<std::uint64_t>(), is_collective ? collective : compute)
        << name;
    EXPECT_TRUE(node.at("is_cpu_op").is_boolean()) << name;
    EXPECT_TRUE(node.at("data_deps").is_array()) << name;
  }
  EXPECT_EQ(trace.at("workload_graph").size(), 3664U);
  EXPECT_EQ(collectives, 21);
}

}  // namespace
}  // namespace frazil
