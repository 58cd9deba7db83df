#pragma once
// A file system in which the call of a given number goes wrong. Several threads may use it.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/disk/file_system.h"

namespace frazil {

// This is thrown where the process ends in the middle of a call.
struct Crash {};

enum class Fault { kCrash, kNoSpace, kInputOutput };

// Returns whether a call of the log does its work in another way where it fails, and so is told of
// nowhere.
bool has_another_way(const std::string& call);

// Counts calls; does nothing wrong before `arm`.
class FaultyFiles {
 public:
  explicit FaultyFiles(FileSystem real);

  FileSystem files();
  int calls() const;
  // Returns each call since the last `disarm`, as its name and path: "write /run/steps.journal".
  std::vector<std::string> log() const;
  // Makes the call after `calls` more go wrong; if that is a write, half is done first. After a
  // crash no call is done but closes.
  void arm(Fault fault, int calls);
  // Makes the call after `calls` more of this text in the log go wrong.
  void arm(Fault fault, const std::string& text, int calls);
  bool has_struck() const;
  void disarm();
  // Makes writes take no more bytes than this at once, and interrupts those that are every third
  // call.
  void hinder(std::size_t largest_write);

 private:
  struct State {
    mutable std::mutex mutex;  // guards all below
    std::vector<std::string> log;
    std::string only;                  // calls of this text count; empty: all
    std::map<int, std::string> paths;  // of what is open
    int left = 1 << 30;
    Fault fault = Fault::kCrash;
    std::size_t largest_write = std::size_t(-1);

    // Returns 0, or the error that the call gives.
    int strike(const std::string& call);
    bool counts(const std::string& call) const { return only.empty() || only == call; }
    bool is_next(const std::string& call) const;
    std::string path_of(int file);
    // Returns whether a write that has not been struck is interrupted.
    bool interrupts() const;
  };

  FileSystem real_;
  std::shared_ptr<State> state_;
};

}  // namespace frazil
