// One sentence tells each thing that stands between --device cuda and a GPU.

#include "exec/devices/load_accelerator.h"

#include <gtest/gtest.h>

#include <fstream>

#include "exec/devices/compute_device.h"
#include "profiles/error.h"
#include "tests/exec/devices/fake_accelerator.h"

namespace frazil {
namespace {

DeviceChoice fake_choice() {
  return {.kind = DeviceKind::kCuda, .gpus = {}, .splits = true, .plugin = FRAZIL_FAKE_PLUGIN};
}

class LoadAccelerator : public testing::Test {
 protected:
  void SetUp() override { fake_.reset(); }
  void TearDown() override { fake_.reset(); }

  FakeAccelerator& fake_ = open_fake(FRAZIL_FAKE_PLUGIN);
};

std::string refusal_of(const DeviceChoice& choice) {
  try {
    check_devices(choice);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refusal_of(const std::string& plugin) {
  DeviceChoice choice = fake_choice();
  choice.plugin = plugin;
  return refusal_of(choice);
}

void expect_around(const std::string& text, const std::string& begin, const std::string& end) {
  EXPECT_TRUE(text.starts_with(begin)) << text << "\nshould begin with\n" << begin;
  EXPECT_TRUE(text.ends_with(end)) << text << "\nshould end with\n" << end;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST_F(LoadAccelerator, OpensAPluginOfThisVersion) {
  EXPECT_EQ(load_accelerator(FRAZIL_FAKE_PLUGIN).version, kAcceleratorVersion);
  EXPECT_EQ(refusal_of(fake_choice()), "nothing was thrown");
}

TEST_F(LoadAccelerator, LooksBesideTheProgramsOfTheBuild) {
  const std::filesystem::path found = default_plugin();
  EXPECT_EQ(found.parent_path(), std::filesystem::canonical(FRAZIL_PROGRAM_FOLDER "/..") / "lib");
  EXPECT_EQ(found.filename(), "libfrazil_cuda.so");
}

TEST_F(LoadAccelerator, SaysHowToGetAPluginThatIsMissing) {
  EXPECT_EQ(refusal_of("/nowhere/libfrazil_cuda.so"),
            "--device cuda: found no plug-in /nowhere/libfrazil_cuda.so, expected one built where "
            "CMake finds the CUDA toolkit and a libtorch with CUDA (run ./setup.sh and build again "
            "there), or --device cpu");
}

TEST_F(LoadAccelerator, PassesOnWhatTheLoaderSays) {
  const std::string path = testing::TempDir() + "frazil-not-a-library.so";
  std::ofstream(path) << "not a library at all, but long enough to be looked into";
  expect_around(refusal_of(path), "--device cuda: found a plug-in that does not load: " + path,
                ", expected all libraries of torch 2.11 for CUDA 13 where they were built against, "
                "or --device cpu");
}

TEST_F(LoadAccelerator, RefusesALibraryThatIsNoPlugin) {
  EXPECT_EQ(refusal_of(FRAZIL_NO_PLUGIN),
            "--device cuda: found that " FRAZIL_NO_PLUGIN
            " has no frazil_accelerator, expected the plug-in of this build");
}

TEST_F(LoadAccelerator, RefusesAnotherVersion) {
  EXPECT_EQ(refusal_of(FRAZIL_OTHER_PLUGIN), "--device cuda: found plug-in " FRAZIL_OTHER_PLUGIN
                                             " of version 1000, expected version " +
                                                 std::to_string(kAcceleratorVersion) +
                                                 "; build all of Frazil again");
}

TEST_F(LoadAccelerator, SaysThatThereIsNoDriver) {
  fake_.driver_error = "CUDA driver version is insufficient for CUDA runtime version";
  EXPECT_EQ(refusal_of(fake_choice()),
            "--device cuda: found no working driver (CUDA driver version is insufficient for CUDA "
            "runtime version), expected a GPU with a driver for CUDA 13, or --device cpu");
}

TEST_F(LoadAccelerator, SaysThatThereIsNoGpu) {
  fake_.gpus = 0;
  EXPECT_EQ(refusal_of(fake_choice()),
            "--device cuda: found no GPU, expected a GPU with a driver for CUDA 13, or --device "
            "cpu");
}

TEST_F(LoadAccelerator, SaysWhichGpuIsNotThere) {
  fake_.gpus = 2;
  DeviceChoice choice = fake_choice();
  choice.gpus = {1, 2};
  EXPECT_EQ(refusal_of(choice),
            "--device cuda: found GPU 2, expected one of the 2 that are here, counted from 0");
  choice.gpus = {-1};
  EXPECT_EQ(refusal_of(choice),
            "--device cuda: found GPU -1, expected one of the 2 that are here, counted from 0");
}

TEST_F(LoadAccelerator, AsksNothingOfCores) {
  EXPECT_EQ(refusal_of(DeviceChoice{.plugin = "/nowhere/at/all"}), "nothing was thrown");
}

}  // namespace
}  // namespace frazil
