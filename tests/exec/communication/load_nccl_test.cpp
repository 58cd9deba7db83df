// One sentence tells each thing that stands between a run and NCCL; NCCL keeps to the interface
// that it is given.

#include "exec/communication/load_nccl.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "profiles/error.h"

namespace frazil {
namespace {

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(LoadNccl, OpensAPluginOfThisVersion) {
  const NcclTable& table = load_nccl(FRAZIL_FAKE_NCCL);
  EXPECT_EQ(table.version, kNcclVersion);
  EXPECT_EQ(table.library_version(), 22809);
}

TEST(LoadNccl, LooksBesideTheProgramsOfTheBuild) {
  EXPECT_EQ(default_nccl_plugin().parent_path(),
            std::filesystem::canonical(FRAZIL_PROGRAM_FOLDER "/..") / "lib");
  EXPECT_EQ(default_nccl_plugin().filename(), "libfrazil_nccl.so");
}

TEST(LoadNccl, SaysWhatIsMissingOrAnother) {
  EXPECT_EQ(refusal_of([] { (void)load_nccl("/nowhere/libfrazil_nccl.so"); }),
            "NCCL: found no plug-in /nowhere/libfrazil_nccl.so, expected one built where CMake "
            "finds the CUDA toolkit, a libtorch with CUDA and NCCL with its header");
  EXPECT_EQ(refusal_of([] { (void)load_nccl(FRAZIL_OTHER_NCCL); }),
            "NCCL: found plug-in " FRAZIL_OTHER_NCCL " of version 1000, expected version " +
                std::to_string(kNcclVersion) + "; build all of Frazil again");
}

TEST(LoadNccl, FindsTheInterfaceOfAnAddress) {
  EXPECT_EQ(interface_of("127.0.0.1"), "lo");
  EXPECT_EQ(refusal_of([] { (void)interface_of("192.0.2.77"); }),
            "NCCL: found no network interface with address 192.0.2.77, expected an address of this "
            "host");
  EXPECT_EQ(refusal_of([] { (void)interface_of("localhost"); }),
            "NCCL: found address 'localhost', expected an IPv4 or IPv6 address");
}

TEST(LoadNccl, IsBoundToLoopbackUnlessTheEnvironmentSaysOtherwise) {
  ::unsetenv("NCCL_SOCKET_IFNAME");
  bind_nccl();
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=lo");
  ::setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
  bind_nccl();
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "eth7");
  ::unsetenv("NCCL_SOCKET_IFNAME");
}

}  // namespace
}  // namespace frazil
