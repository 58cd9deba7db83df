#pragma once
// Processes that join a run at the loopback: threads for what must be looked into, and callers that
// speak the joining by hand, as broken and hostile ones do.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "exec/links/joining/join.h"
#include "profiles/error.h"

namespace frazil {

inline Secret secret_of(std::uint8_t byte) {
  Secret secret{};
  secret.fill(byte);
  return secret;
}

inline ProcessFacts facts_of_run() {
  return {.version = "0.1.0", .build = 1, .run = 2, .kernels = 3, .host = "here", .devices = 2};
}

// What a leader has told, from whichever thread.
class Told {
 public:
  std::function<void(const std::string&)> listen() {
    return [this](const std::string& sentence) {
      const std::lock_guard<std::mutex> lock(mutex_);
      sentences_.push_back(sentence);
    };
  }
  // Waits until a sentence begins so, and returns what follows; "" if none does.
  std::string wait_for(const std::string& beginning) {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const std::string& sentence : sentences_) {
          if (sentence.rfind(beginning, 0) == 0) return sentence.substr(beginning.size());
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }
  // Waits until a sentence ends so; false if none does.
  bool has_end(const std::string& end) {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const std::string& sentence : sentences_) {
          if (sentence.size() >= end.size() &&
              sentence.compare(sentence.size() - end.size(), end.size(), end) == 0) {
            return true;
          }
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> sentences_;
};

inline LaunchPlace leader_of(int processes, int port = 0) {
  LaunchPlace place;
  place.process = 0;
  place.processes = processes;
  place.meeting = LaunchAddress{"127.0.0.1", port};
  return place;
}

inline LaunchPlace member_at(int port) {
  LaunchPlace place;
  place.processes = 0;
  place.meeting = LaunchAddress{"127.0.0.1", port};
  return place;
}

inline JoinOptions options_with(std::optional<Secret> token, Told* told = nullptr) {
  JoinOptions options;
  options.facts = facts_of_run();
  options.token = token;
  options.limit = std::chrono::seconds(30);
  options.patience = std::chrono::milliseconds(500);
  if (told != nullptr) options.tell = told->listen();
  return options;
}

// A leader on a thread of its own.
class LeaderThread {
 public:
  LeaderThread(int processes, JoinOptions options) {
    options.tell = told.listen();
    world_ = std::async(std::launch::async,
                        [processes, options] { return join_world(leader_of(processes), options); });
  }
  int port() {
    const std::string where = told.wait_for("listening at 127.0.0.1:");
    return where.empty() ? 0 : std::stoi(where);
  }
  JoinedWorld world() { return world_.get(); }

  Told told;

 private:
  std::future<JoinedWorld> world_;
};

inline std::future<JoinedWorld> join_in_thread(int port, const JoinOptions& options) {
  return std::async(std::launch::async, [=] { return join_world(member_at(port), options); });
}

// Returns the sentence with which joining fails.
inline std::string failure_to_join(const LaunchPlace& place, const JoinOptions& options) {
  try {
    (void)join_world(place, options);
  } catch (const InputError& error) {
    return error.what();
  } catch (const PeerLost& error) {
    return error.what();
  }
  return "joined";
}

inline Descriptor call(int port) {
  return connect_to({"127.0.0.1", static_cast<std::uint16_t>(port)}, {}, std::chrono::seconds(5));
}

inline JoinFrame hear(const Descriptor& socket) {
  return receive_message(socket, JoinClock::now() + std::chrono::seconds(10), "the leader");
}

inline void say(const Descriptor& socket, const std::string& bytes) {
  send_message(socket, bytes, JoinClock::now() + std::chrono::seconds(5), "the leader");
}

// Every pair of the worlds, which must be all of a run, says a byte over both connections.
inline void expect_connected(std::vector<JoinedWorld*> worlds) {
  const auto numbered = [](const JoinedWorld* a, const JoinedWorld* b) {
    return a->process < b->process;
  };
  std::sort(worlds.begin(), worlds.end(), numbered);
  const auto swap = [](const Descriptor& from, const Descriptor& to, char byte) {
    ASSERT_TRUE(from.is_open() && to.is_open());
    ASSERT_EQ(::send(from.number(), &byte, 1, MSG_NOSIGNAL), 1);
    pollfd entry{to.number(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 5000), 1);
    char got = 0;
    ASSERT_EQ(::recv(to.number(), &got, 1, 0), 1);
    EXPECT_EQ(got, byte);
  };
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    EXPECT_EQ(worlds[i]->process, static_cast<int>(i));
    EXPECT_EQ(worlds[i]->processes, static_cast<int>(worlds.size()));
    EXPECT_FALSE(worlds[i]->peers[i].steps.is_open());
    for (std::size_t j = 0; j < worlds.size(); ++j) {
      if (i == j) continue;
      const char byte = static_cast<char>('a' + 7 * i + j);
      swap(worlds[i]->peers[j].steps, worlds[j]->peers[i].steps, byte);
      swap(worlds[i]->peers[j].bulk, worlds[j]->peers[i].bulk, byte);
    }
    if (i > 0) swap(worlds[i]->control[0], worlds[0]->control[i], 'c');
  }
}

// The local addresses, as /proc tells them, at which this process listens.
inline std::set<std::string> listening_addresses() {
  std::set<std::string> own;
  for (int file = 3; file < 1024; ++file) {
    char target[64] = "";
    const std::string name = "/proc/self/fd/" + std::to_string(file);
    if (::readlink(name.c_str(), target, sizeof target - 1) > 0) own.insert(target);
  }
  std::set<std::string> addresses;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      std::string place, local, remote, state, queues, timer, retries, user, timeout, inode;
      fields >> place >> local >> remote >> state >> queues >> timer >> retries >> user >>
          timeout >> inode;
      if (state == "0A" && own.contains("socket:[" + inode + "]")) {
        addresses.insert(local.substr(0, local.find(':')));
      }
    }
  }
  return addresses;
}

inline std::size_t open_files() {
  std::size_t count = 0;
  for (int file = 0; file < 1024; ++file) {
    char target[64] = "";
    const std::string name = "/proc/self/fd/" + std::to_string(file);
    if (::readlink(name.c_str(), target, sizeof target - 1) > 0) ++count;
  }
  return count;
}

}  // namespace frazil
