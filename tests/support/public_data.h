#pragma once
// Files that ship with other projects, which tests read where they are at hand.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace frazil {

// "pipedream/vgg16.graph.txt"; the path is there or the test is to be skipped.
inline std::filesystem::path public_data(const std::string& name) {
  return std::filesystem::path(FRAZIL_SOURCE_FOLDER) / ".." / "shared" / "data" / name;
}

inline bool has_public_data(const std::string& name) {
  std::error_code missing;
  return std::filesystem::exists(public_data(name), missing);
}

}  // namespace frazil

#define SKIP_WITHOUT_PUBLIC_DATA(name) \
  if (!has_public_data(name)) GTEST_SKIP() << "the public file " << (name) << " is not at hand"
