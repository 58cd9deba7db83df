#pragma once
// Says by a file where the first process of a launch listens, for launches on one host whose
// launcher does not: in a folder of this user alone, with a token drawn for this launch, so that
// nobody else joins.

#include <filesystem>
#include <optional>
#include <string>

#include "exec/links/joining/join_token.h"
#include "exec/links/socket.h"

namespace frazil {

struct Meeting {
  SocketAddress address;
  Secret token{};

  friend bool operator==(const Meeting&, const Meeting&) = default;
};

// XDG_RUNTIME_DIR, else frazil-UID in the folder for temporary files, which is made if it is
// missing. Throws InputError unless it is a folder of this user alone.
std::filesystem::path find_meeting_folder();

// A file that appears whole, with mode 0600, in place of one that an earlier launch left, and goes
// with this object.
class MeetingFile {
 public:
  MeetingFile(std::filesystem::path place, const Meeting& meeting);
  ~MeetingFile();
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::filesystem::path place_;
};

// Returns none if there is no file, or none that this user wrote.
std::optional<Meeting> read_meeting(const std::filesystem::path& place);

}  // namespace frazil
