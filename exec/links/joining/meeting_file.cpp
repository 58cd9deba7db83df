#include "exec/links/joining/meeting_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "exec/links/descriptor.h"
#include "exec/links/joining/launch_environment.h"
#include "profiles/error.h"

namespace frazil {
namespace {

constexpr const char* kExpectedFolder = "a folder that only this user may enter";

}  // namespace

std::filesystem::path find_meeting_folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  std::filesystem::path folder = runtime == nullptr ? "" : runtime;
  if (folder.empty()) {
    folder = std::filesystem::temp_directory_path() / ("frazil-" + std::to_string(::geteuid()));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      fail_system(folder.string(), errno, "mkdir", kExpectedFolder);
    }
  }
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) {
    fail_system(folder.string(), errno, "lstat", kExpectedFolder);
  }
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid() || (facts.st_mode & 077U) != 0) {
    throw InputError(folder.string(), 0, "a place that others own or may enter", kExpectedFolder);
  }
  return folder;
}

MeetingFile::MeetingFile(std::filesystem::path place, const Meeting& meeting)
    : place_(std::move(place)) {
  const std::string text = to_text(meeting.address) + " " + to_digits(meeting.token) + "\n";
  std::string aside = place_.string() + ".XXXXXX";
  const Descriptor file(::mkostemp(aside.data(), O_CLOEXEC));  // mode 0600
  if (!file.is_open()) fail_system(place_.string(), errno, "open", "a place for an address");
  const bool is_written =
      ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::rename(aside.c_str(), place_.c_str()) == 0;
  if (is_written) return;
  const int error = errno;
  ::unlink(aside.c_str());
  fail_system(place_.string(), error, "write", "a place for an address");
}

MeetingFile::~MeetingFile() { ::unlink(place_.c_str()); }

std::optional<Meeting> read_meeting(const std::filesystem::path& place) {
  const Descriptor file(::open(place.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.number(), &facts) != 0) return std::nullopt;
  const bool is_ours =
      S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid() && (facts.st_mode & 07777U) == 0600U;
  if (!is_ours) return std::nullopt;
  std::array<char, 256> bytes{};
  const ssize_t size = ::read(file.number(), bytes.data(), bytes.size());
  if (size <= 0) return std::nullopt;
  std::string_view text(bytes.data(), static_cast<std::size_t>(size));
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.back() != '\n') return std::nullopt;
  text.remove_suffix(1);
  const std::optional<Secret> token = parse_digits(text.substr(space + 1));
  if (!token) return std::nullopt;
  const LaunchAddress address = parse_address(text.substr(0, space), place.string());
  return Meeting{{address.host, static_cast<std::uint16_t>(address.port)}, *token};
}

}  // namespace frazil
