#pragma once
// Threads that play ranks, each with the error at which it ended, and counts of what a failure may
// leave.

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/communication/communication_error.h"
#include "exec/communication/communicator.h"

namespace frazil {

struct RankFailure {
  std::string sentence;  // empty: the rank ended well
  std::optional<CommunicationFault> fault;
};

inline RankFailure failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommunicationError& error) {
    return {error.what(), error.fault()};
  } catch (const std::exception& error) {
    return {error.what(), std::nullopt};
  }
  return {};
}

// Runs `job` on a thread per communicator; nobody aborts but the communicators.
inline std::vector<RankFailure> failures_of(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    const std::function<void(Communicator&)>& job) {
  std::vector<RankFailure> failures(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back(
        [&, rank] { failures[rank] = failure_of([&] { job(*communicators[rank]); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

inline std::vector<std::string> sentences_of(const std::vector<RankFailure>& failures) {
  std::vector<std::string> sentences;
  for (const RankFailure& failure : failures) sentences.push_back(failure.sentence);
  return sentences;
}

inline std::ptrdiff_t count_entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

// Returns the fewest threads of a quarter of a second, for a thread that has been waited for leaves
// the list a moment later.
inline std::ptrdiff_t count_threads() {
  std::ptrdiff_t fewest = count_entries("/proc/self/task");
  for (int i = 0; i < 250; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fewest = std::min(fewest, count_entries("/proc/self/task"));
  }
  return fewest;
}

inline bool threads_come_down_to(std::ptrdiff_t count) {
  for (int i = 0; i < 10000 && count_entries("/proc/self/task") > count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return count_entries("/proc/self/task") == count;
}

}  // namespace frazil
