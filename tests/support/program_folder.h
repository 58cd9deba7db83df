#pragma once
// Runs the built programs in a folder of their own and tells what they print, how they exit and
// what they leave.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "profiles/text_file.h"

namespace frazil {

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// A folder that exists as long as the object; `name` tells the folders of one process apart.
class ProgramFolder {
 public:
  explicit ProgramFolder(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("frazil-" + std::to_string(getpid()) + "-" + name)) {
    std::filesystem::create_directories(folder_);
  }
  ~ProgramFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ProgramFolder(const ProgramFolder&) = delete;
  ProgramFolder& operator=(const ProgramFolder&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Runs frazil-<verb> with the folder as its working directory.
  Outcome run(const std::string& verb, const std::string& arguments) const {
    const std::string command = "cd '" + folder_.string() + "' && '" +
                                std::string(FRAZIL_PROGRAM_FOLDER) + "/frazil-" + verb + "' " +
                                arguments + " >out.txt 2>err.txt";
    const int status = std::system(command.c_str());
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(path("out.txt")),
                    read_text_file(path("err.txt"))};
    std::filesystem::remove(path("out.txt"));
    std::filesystem::remove(path("err.txt"));
    return outcome;
  }

  std::size_t count_files() const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files += entry.exists() ? 1 : 0;
    }
    return files;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace frazil
