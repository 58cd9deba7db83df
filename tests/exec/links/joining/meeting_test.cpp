// Processes whose launcher does not say where the first one listens find it all the same: through
// the store of torchrun's agent, or a file of their user.

#include "exec/links/joining/meeting.h"

#include <sys/stat.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "tests/exec/links/joining/joining_processes.h"

namespace frazil {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/frazil-meeting-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  JoinOptions options() const {
    JoinOptions options = options_with(std::nullopt);
    options.meeting_folder = folder_;
    return options;
  }

  std::filesystem::path folder_;
};

// As mpirun on one host.
LaunchPlace local_place(int process, int processes) {
  LaunchPlace place;
  place.launcher = Launcher::kOpenMpi;
  place.process = process;
  place.processes = processes;
  place.local = LocalPlace{process, processes};
  place.job = "1960837121";
  return place;
}

using MeetingByFile = Folder;

TEST_F(MeetingByFile, BringsProcessesOfOneHostTogetherWithATokenAndLeavesNothing) {
  auto second =
      std::async(std::launch::async, [&] { return join_world(local_place(2, 3), options()); });
  auto first =
      std::async(std::launch::async, [&] { return join_world(local_place(1, 3), options()); });
  JoinedWorld world = join_world(local_place(0, 3), options());
  JoinedWorld one = first.get();
  JoinedWorld two = second.get();
  expect_connected({&world, &one, &two});
  EXPECT_TRUE(world.token.has_value());
  EXPECT_EQ(listening_addresses(), std::set<std::string>{"0100007F"});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// An earlier launch was killed and left its file.
TEST_F(MeetingByFile, OfAnEarlierLaunchIsReplaced) {
  const auto failing = [&] {
    JoinOptions alone = options();
    alone.limit = milliseconds(100);
    (void)failure_to_join(local_place(0, 2), alone);
  };
  failing();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  std::filesystem::path left;
  {
    auto leading = std::async(std::launch::async, failing);
    while (left.empty()) {
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        if (entry.path().extension() == ".join") left = entry.path();
      }
    }
    std::filesystem::copy(left, left.string() + ".copy");
  }
  std::filesystem::rename(left.string() + ".copy", left);
  ASSERT_EQ(chmod(left.c_str(), 0600), 0);
  ASSERT_TRUE(read_meeting(left).has_value());
  auto joining =
      std::async(std::launch::async, [&] { return join_world(local_place(1, 2), options()); });
  std::this_thread::sleep_for(milliseconds(50));
  JoinedWorld world = join_world(local_place(0, 2), options());
  JoinedWorld member = joining.get();
  expect_connected({&world, &member});
}

TEST_F(MeetingByFile, IsOneOfThisUserAloneAndWellFormed) {
  const std::filesystem::path place = folder_ / "place";
  const Meeting meeting{{"127.0.0.1", 4000}, secret_of(3)};
  {
    const MeetingFile file(place, meeting);
    EXPECT_EQ(read_meeting(place), meeting);
    ASSERT_EQ(chmod(place.c_str(), 0644), 0);
    EXPECT_FALSE(read_meeting(place).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(place));
  EXPECT_FALSE(read_meeting(place).has_value());
  for (const char* text : {"", "127.0.0.1:4000", "127.0.0.1:4000 00\n", "\n"}) {
    std::ofstream(place) << text;
    ASSERT_EQ(chmod(place.c_str(), 0600), 0);
    EXPECT_FALSE(read_meeting(place).has_value()) << text;
  }
}

TEST_F(MeetingByFile, LiesInAFolderThatNobodyElseMayEnter) {
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1), 0);
  EXPECT_EQ(find_meeting_folder(), folder_);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_THROW((void)find_meeting_folder(), InputError);
  ASSERT_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
  ASSERT_EQ(setenv("TMPDIR", folder_.c_str(), 1), 0);
  const std::filesystem::path own = find_meeting_folder();
  ASSERT_EQ(unsetenv("TMPDIR"), 0);
  EXPECT_EQ(own.parent_path(), folder_);
  struct stat facts {};
  ASSERT_EQ(stat(own.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0700U);
}

TEST_F(MeetingByFile, IsNotForLaunchesOfSeveralHostsOrWithoutAName) {
  LaunchPlace place = local_place(0, 4);
  place.local = LocalPlace{0, 2};
  EXPECT_EQ(failure_to_join(place, options()),
            "environment: found the variables of mpirun (OpenMPI), which do not say where process "
            "0 listens, expected MASTER_ADDR and MASTER_PORT, or --listen ADDRESS:PORT");
  place = local_place(1, 4);
  place.launcher = Launcher::kPmi;
  place.job = "";
  EXPECT_EQ(failure_to_join(place, options()),
            "environment: found the variables of mpiexec (PMI), which do not say where process 0 "
            "listens, expected MASTER_ADDR and MASTER_PORT, or --listen ADDRESS:PORT");
}

// The agent's store, on a socket that is bound here: by itself it would listen everywhere.
class Agent {
 public:
  Agent() {
    Descriptor listener = listen_at({});
    address_ = {"127.0.0.1", address_of(listener).port};
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(address_.port);
    options.isServer = true;
    options.waitWorkers = false;
    options.masterListenFd = listener.release();
    store_ = c10::make_intrusive<c10d::TCPStore>(address_.host, options);
  }
  LaunchPlace place(int process, int processes, int restarts = 0) const {
    LaunchPlace place;
    place.launcher = Launcher::kTorchrun;
    place.process = process;
    place.processes = processes;
    place.local = LocalPlace{process, processes};
    place.meeting = address_;
    place.agent_store = true;
    place.job = "job7";
    place.restarts = restarts;
    return place;
  }

 private:
  LaunchAddress address_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

TEST(MeetingByAgent, BringsTheProcessesOfTorchrunTogether) {
  const Agent agent;
  auto joining = std::async(std::launch::async, [&] {
    return join_world(agent.place(1, 2), options_with(std::nullopt));
  });
  JoinedWorld world = join_world(agent.place(0, 2), options_with(std::nullopt));
  JoinedWorld member = joining.get();
  expect_connected({&world, &member});
  EXPECT_EQ(listening_addresses(), std::set<std::string>{"0100007F"});
}

// torchrun starts all processes again in the same store; what the first start published is stale.
TEST(MeetingByAgent, OfARestartIsItsOwn) {
  const Agent agent;
  for (const int restarts : {0, 1}) {
    auto joining = std::async(std::launch::async, [&] {
      return join_world(agent.place(1, 2, restarts), options_with(std::nullopt));
    });
    JoinedWorld world = join_world(agent.place(0, 2, restarts), options_with(std::nullopt));
    JoinedWorld member = joining.get();
    expect_connected({&world, &member});
  }
}

TEST(MeetingByAgent, ThatDoesNotAnswerIsASentence) {
  LaunchPlace place;
  {
    const Agent agent;
    place = agent.place(1, 2);
    JoinOptions options = options_with(std::nullopt);
    options.limit = milliseconds(300);
    EXPECT_EQ(failure_to_join(place, options),
              "the store of torchrun's agent at " + to_text(*place.meeting) +
                  " does not say where the first process listens (frazil/job7/0)");
  }
}

TEST(Resolve, PrefersTheAddressesOfIPv4) {
  EXPECT_EQ(resolve({"127.0.0.1", 1}), (SocketAddress{"127.0.0.1", 1}));
  EXPECT_EQ(resolve({"::1", 1}), (SocketAddress{"::1", 1}));
  EXPECT_EQ(resolve({"localhost", 1}), (SocketAddress{"127.0.0.1", 1}));
  EXPECT_THROW((void)resolve({"no-such-host.invalid", 1}), InputError);
}

}  // namespace
}  // namespace frazil
