#include "tests/exec/disk/disk_model.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace frazil {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

void DiskModel::apply(const Change& change, Names& names) {
  if (!change.removed.empty()) names.erase(change.removed);
  if (!change.added.empty()) names[change.added] = change.inode;
}

void DiskModel::make(const Change& change) {
  apply(change, names_);
  pending_.push_back(change);
}

int DiskModel::open(const std::string& path, int flags) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    if (!gives_nameless_) return -EOPNOTSUPP;
    open_[next_] = {path, std::make_shared<Inode>()};
    return next_++;
  }
  if ((flags & O_DIRECTORY) != 0) {
    open_[next_] = {path, nullptr};
    return next_++;
  }
  const bool exists = names_.contains(path);
  if (!exists && (flags & O_CREAT) == 0) return -ENOENT;
  if (exists && (flags & O_EXCL) != 0) return -EEXIST;
  if (!exists) make({"", path, std::make_shared<Inode>()});
  open_[next_] = {path, names_.at(path)};
  return next_++;
}

// `write` appends whatever the place, for its callers write a file from its beginning to its end.
FileSystem DiskModel::files() {
  FileSystem files;
  files.open = [this](const std::string& path, int flags) { return open(path, flags); };
  files.read_at = [this](int file, void* bytes, std::size_t size, std::int64_t place) -> ssize_t {
    const std::string& now = open_.at(file).inode->now;
    const auto begin = std::min(static_cast<std::size_t>(place), now.size());
    const std::size_t count = std::min(size, now.size() - begin);
    std::memcpy(bytes, now.data() + begin, count);
    return static_cast<ssize_t>(count);
  };
  files.write_at = [this](int file, const void* bytes, std::size_t size,
                          std::int64_t place) -> ssize_t {
    std::string& now = open_.at(file).inode->now;
    const auto begin = static_cast<std::size_t>(place);
    now.resize(std::max(now.size(), begin + size), '\0');
    std::memcpy(now.data() + begin, bytes, size);
    return static_cast<ssize_t>(size);
  };
  files.read = [this](int file, void* bytes, std::size_t size) -> ssize_t {
    Open& open = open_.at(file);
    const std::size_t count = std::min(size, open.inode->now.size() - open.place);
    std::memcpy(bytes, open.inode->now.data() + open.place, count);
    open.place += count;
    return static_cast<ssize_t>(count);
  };
  files.write = [this](int file, const void* bytes, std::size_t size) -> ssize_t {
    open_.at(file).inode->now.append(static_cast<const char*>(bytes), size);
    return static_cast<ssize_t>(size);
  };
  files.open_direct = [this](int file) {
    open_[next_] = open_.at(file);
    return next_++;
  };
  files.read_direct = files.read_at;
  // Some pieces are in memory and some are not, so that files are read in both ways.
  files.is_in_memory = [](int, std::size_t, std::int64_t place) {
    return static_cast<std::uint64_t>(place) * 0x9e3779b97f4a7c15 >> 63 == 0 ? 1 : 0;
  };
  files.sync = [this](int file) {
    const Open& open = open_.at(file);
    if (open.inode) {
      open.inode->durable = open.inode->now;
      return 0;
    }
    std::erase_if(pending_, [&](const Change& change) {
      const bool is_here =
          folder_of(change.added.empty() ? change.removed : change.added) == open.path;
      if (is_here) apply(change, durable_);
      return is_here;
    });
    return 0;
  };
  files.truncate = [this](int file, std::int64_t size) {
    open_.at(file).inode->now.resize(static_cast<std::size_t>(size));
    return 0;
  };
  files.size = [this](int file) {
    return static_cast<std::int64_t>(open_.at(file).inode->now.size());
  };
  files.lock = [this](int file) {
    const std::string& path = open_.at(file).path;
    for (const auto& [other, open] : open_) {
      if (open.locks && open.path == path) return -EWOULDBLOCK;
    }
    open_.at(file).locks = true;
    return 0;
  };
  files.close = [this](int file) {
    open_.erase(file);
    return 0;
  };
  files.rename = [this](const std::string& from, const std::string& to) {
    if (!names_.contains(from)) return -ENOENT;
    make({from, to, names_.at(from)});
    return 0;
  };
  files.unlink = [this](const std::string& path) {
    if (!names_.contains(path)) return -ENOENT;
    make({path, "", nullptr});
    return 0;
  };
  files.make_folder = [](const std::string&) { return -EEXIST; };
  files.list = [this](const std::string& folder, std::vector<std::string>& names) {
    for (const auto& [path, inode] : names_) {
      if (folder_of(path) == folder) names.push_back(path.substr(folder.size() + 1));
    }
    return 0;
  };
  const auto guard = [mutex = mutex_](auto& call) {
    call = [mutex, alone = std::move(call)](auto&&... arguments) {
      const std::lock_guard<std::mutex> lock(*mutex);
      return alone(arguments...);
    };
  };
  guard(files.open);
  guard(files.read);
  guard(files.write);
  guard(files.read_at);
  guard(files.write_at);
  guard(files.open_direct);
  guard(files.read_direct);
  guard(files.is_in_memory);
  guard(files.sync);
  guard(files.truncate);
  guard(files.size);
  guard(files.lock);
  guard(files.close);
  guard(files.rename);
  guard(files.unlink);
  guard(files.make_folder);
  guard(files.list);
  return files;
}

void DiskModel::lose_power(std::mt19937_64& random) {
  open_.clear();
  for (const Change& change : pending_) {
    if (random() % 2 == 0) apply(change, durable_);
  }
  pending_.clear();
  names_ = durable_;
  for (auto& [path, inode] : names_) {
    std::string& durable = inode->durable;
    const std::string& now = inode->now;
    switch (now == durable ? 0 : random() % 4) {
      case 0:
        break;
      case 1:
        durable = now;
        break;
      case 2:  // a part of it, unless it became shorter
        if (now.size() > durable.size()) {
          durable = now.substr(0, durable.size() + random() % (now.size() - durable.size()));
        }
        break;
      case 3:  // the size, without the bytes
        durable.resize(now.size(), '\0');
        break;
    }
    inode->now = durable;
  }
}

std::map<std::string, std::string> DiskModel::contents() const {
  std::map<std::string, std::string> contents;
  for (const auto& [path, inode] : names_) contents[path] = inode->now;
  return contents;
}

}  // namespace frazil
