#pragma once
// Real inputs that are not part of the project. A test that needs them skips, with its reason,
// where they are absent.

#include <gtest/gtest.h>

#include <filesystem>

namespace frazil {

// Folder of the shared data beside the checkout; may not exist.
inline std::filesystem::path shared_data() { return FRAZIL_SHARED_DATA; }

}  // namespace frazil

#define SKIP_WITHOUT_SHARED_DATA(relative)                                         \
  do {                                                                             \
    if (!std::filesystem::exists(::frazil::shared_data() / (relative)))            \
      GTEST_SKIP() << "shared data " << (relative) << " is not beside the checkout"; \
  } while (false)
