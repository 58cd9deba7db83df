// Implements frazil <subcommand> [arguments]: starts the program frazil-<subcommand> that lies
// beside this one. Subcommands are programs of their own, so that planning and simulating never
// load libtorch.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "planner/answers/error_json.h"
#include "profiles/error.h"
#include "profiles/known_names.h"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

struct Verb {
  std::string_view name;
  std::string_view does;
  bool needs_libtorch;
};

constexpr std::array kVerbs = {
    Verb{"profile", "measure a model's layers on a device", true},
    Verb{"plan", "find the best pipeline for a model on a cluster", false},
    Verb{"cluster", "make the file of a cluster that nobody has measured", false},
    Verb{"simulate", "predict what a plan or a schedule takes", false},
    Verb{"train", "train by a plan that changes as layers freeze", true},
    Verb{"verify", "check that a plan still runs as its costs say", false},
    Verb{"import", "read traces, graphs, tables and plans of other programs", false},
    Verb{"export", "write a schedule in the form of another program", false},
    Verb{"report", "lay a prediction and a measurement side by side", false},
    Verb{"check", "check that what a run left holds and agrees", false},
    Verb{"ablate", "say what freezing, AutoPipe, AutoDP and AutoCache bring", false},
    Verb{"reproduce", "redo a published result and lay both side by side", false},
};

std::filesystem::path find_program(const std::filesystem::path& folder, std::string_view verb) {
  return folder / ("frazil-" + std::string(verb));
}

bool is_built(const std::filesystem::path& program) { return access(program.c_str(), X_OK) == 0; }

void print_help(std::ostream& out, const std::filesystem::path& folder) {
  out << "usage: frazil <subcommand> [options]\n\n";
  for (const Verb& verb : kVerbs) {
    std::string name(verb.name);
    name.resize(10, ' ');
    out << "  " << name << verb.does
        << (is_built(find_program(folder, verb.name)) ? "\n" : " (not built)\n");
  }
  out << "\n`frazil help <subcommand>` says more; `frazil --version` names the version.\n";
}

const Verb* find_verb(std::string_view name) {
  const auto* const verb = std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& known) {
    return frazil::is_same_name(known.name, name);
  });
  return verb == kVerbs.end() ? nullptr : verb;
}

// Says what is wrong, and as JSON too where that was asked for.
int complain(const std::string& found, const std::string& expected, bool as_json) {
  const std::string sentence =
      "frazil: " + frazil::to_one_line("found " + found + ", expected " + expected);
  std::cerr << sentence << "\n";
  if (as_json) {
    std::cout << frazil::error_json(sentence,
                                    frazil::InputError("command line", 0, found, expected))
              << std::flush;
  }
  return kExitUsage;
}

int refuse_verb(std::string_view found, bool as_json) {
  std::string expected = "one of ";
  std::vector<std::string_view> names;
  for (const Verb& verb : kVerbs) {
    expected += (names.empty() ? "" : ", ") + std::string(verb.name);
    names.push_back(verb.name);
  }
  names.insert(names.end(), {"help", "--help", "--version"});
  return complain("subcommand `" + std::string(found) + "`",
                  expected + frazil::did_you_mean(found, names), as_json);
}

// Tells what makes the program of a subcommand, as this build was configured.
std::string advise(const Verb& verb) {
#ifdef FRAZIL_WITH_LIBTORCH
  constexpr bool kWithLibtorch = true;
#else
  constexpr bool kWithLibtorch = false;
#endif
  if (verb.needs_libtorch && !kWithLibtorch) {
    return "this build was configured without libtorch; run ./setup.sh, which fetches it, then "
           "configure and build again";
  }
  const std::string build = "build all programs first (cmake --build build --target programs)";
  return verb.needs_libtorch ? build + ", or install the component with libtorch" : build;
}

// Returns only when the program could not be started.
int start_verb(const std::filesystem::path& folder, const Verb& verb, char** arguments) {
  const std::filesystem::path program = find_program(folder, verb.name);
  if (!is_built(program)) {
    std::cerr << "frazil: found no " << frazil::to_one_line(program.string())
              << ", expected it beside frazil: " << advise(verb) << "\n";
    return kExitFailure;
  }
  std::string name(verb.name);
  arguments[0] = name.data();
  execv(program.c_str(), arguments);
  std::cerr << "frazil: " << program.string() << " could not be started: " << std::strerror(errno)
            << "\n";
  return kExitFailure;
}

// Returns 0 if all that was printed has reached standard output; else says so and returns an error.
int finish_answer() {
  if (std::cout.flush()) return 0;
  std::cerr << "frazil: standard output could not be written\n";
  return kExitFailure;
}

// Implements frazil help [SUBCOMMAND]: prints the overview, or what the subcommand says of itself.
int help(int count, char** arguments, const std::filesystem::path& folder, bool as_json) {
  if (count < 3) {
    print_help(std::cout, folder);
    return finish_answer();
  }
  const Verb* const verb = find_verb(arguments[2]);
  if (verb == nullptr) return refuse_verb(arguments[2], as_json);
  if (count > 3) {
    return complain("`" + std::string(arguments[3]) + "`", "one subcommand after help", as_json);
  }
  std::string flag = "--help";
  std::array<char*, 3> asking = {arguments[2], flag.data(), nullptr};
  return start_verb(folder, *verb, asking.data());
}

}  // namespace

int main(int count, char** arguments) {
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) {
    std::cerr << "frazil: /proc/self/exe could not be read: " << error.message() << "\n";
    return kExitFailure;
  }
  if (count < 2) {
    print_help(std::cerr, folder);
    return kExitUsage;
  }
  const std::string_view first = arguments[1];
  if (first == "--help" || first == "-h") {
    print_help(std::cout, folder);
    return finish_answer();
  }
  if (first == "--version") {
    std::cout << "frazil " << FRAZIL_VERSION << "\n";
    return finish_answer();
  }
  const bool as_json =
      std::find(arguments, arguments + count, std::string_view("--json")) != arguments + count;
  if (first == "help") return help(count, arguments, folder, as_json);
  const Verb* const verb = find_verb(first);
  return verb != nullptr ? start_verb(folder, *verb, arguments + 1) : refuse_verb(first, as_json);
}
