#pragma once
// Finds the files of other projects that tests read if they are at hand.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace frazil {

// Returns the path of a file in the folder of public data beside the checkout, such as
// "pipedream/vgg16.graph.txt", whether or not the file exists.
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
