#pragma once
// A disk in memory that knows what would outlive a loss of power: bytes of a file as of its last
// sync, names of a folder as of its last sync. What was not synced may be there or not, in part and
// in any order. Several threads may call its files.

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "exec/disk/file_system.h"

namespace frazil {

class DiskModel {
 public:
  // Makes a file system that refers to this disk. Every folder is there from the beginning.
  FileSystem files();

  // Lets no file be made without a name, as in some file systems.
  void refuse_nameless() { gives_nameless_ = false; }

  // Ends all processes; the machine goes on.
  void kill() { open_.clear(); }
  void lose_power(std::mt19937_64& random);

  std::map<std::string, std::string> contents() const;  // by path
  std::string& bytes(const std::string& path) { return names_.at(path)->now; }

 private:
  struct Inode {
    std::string now;
    std::string durable;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  struct Open {
    std::string path;
    std::shared_ptr<Inode> inode;  // none: a folder
    std::size_t place = 0;
    bool locks = false;
  };
  // A change of a name in a folder happens whole or not at all, as a rename does.
  struct Change {
    std::string removed;
    std::string added;
    std::shared_ptr<Inode> inode;
  };

  static void apply(const Change& change, Names& names);
  void make(const Change& change);
  int open(const std::string& path, int flags);

  Names names_;
  Names durable_;
  std::vector<Change> pending_;
  std::map<int, Open> open_;
  int next_ = 3;
  bool gives_nameless_ = true;
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
};

}  // namespace frazil
