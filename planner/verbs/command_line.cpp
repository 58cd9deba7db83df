#include "planner/verbs/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <exception>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include "planner/answers/error_json.h"
#include "planner/answers/terminal_text.h"
#include "planner/verbs/flag_list.h"
#include "planner/verbs/flags.h"
#include "profiles/known_names.h"
#include "profiles/printable_text.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kExitCodes =
    "exit codes:\n"
    "  0   done\n"
    "  1   failed, or a bug\n"
    "  2   bad usage or input\n"
    "  3   valid but infeasible: nothing fits into memory, no schedule takes the plan, or the plan "
    "asks for what is not interpreted\n"
    "  4   verify: the run differs from its costs, or is slower than its baseline; check: a "
    "part of the run does not hold or agree\n"
    "  5   verify: measured too unsteadily to tell\n"
    "  6   another device of the run failed or was lost\n"
    "  7   out of memory\n"
    "  8   storage is full or fails\n"
    "  9   a permission is missing, or a file system is read-only\n"
    "  10  train: a loss, a gradient or a weight is not finite; nothing of that is kept\n"
    "  75  please start the run again\n"
    "  128 + n  ended by signal n\n";

// True if anything was printed to standard output so far: its first byte gives it an orientation.
bool is_answered() { return std::fwide(stdout, 0) != 0; }

// Tells of failures: in one sentence, and as JSON if that was asked for and no answer is out.
class Complaints {
 public:
  Complaints(const Verb& verb, int argc, char** argv)
      : verb_(verb),
        as_json_(std::find(argv, argv + argc, std::string_view("--json")) != argv + argc) {}

  int tell(std::string_view sentence, ExitCode code) const {
    const std::string line = print_sentence(sentence);
    if (is_wanted()) print_answer(error_json(code, line));
    return static_cast<int>(code);
  }

  int tell(const InputError& error) const {
    const std::string line = print_sentence(error.what());
    if (is_wanted()) print_answer(error_json(line, error));
    return static_cast<int>(error.code());
  }

 private:
  bool is_wanted() const { return as_json_ && !is_answered(); }

  std::string print_sentence(std::string_view sentence) const {
    const std::string line = fmt::format("frazil {}: {}", verb_.name, to_one_line(sentence));
    fmt::print(stderr, "{}\n", line);
    return line;
  }

  const Verb& verb_;
  bool as_json_;
};

// The table of flags, as wide as the terminal.
std::string describe(const po::options_description& options) {
  constexpr int kWidest = 100;
  constexpr int kNarrowest = 60;
  const int columns = find_terminal().columns;
  const int width = columns == 0 ? kWidest : std::clamp(columns, kNarrowest, kWidest);
  po::options_description fitted("flags", static_cast<unsigned>(width));
  for (const auto& option : options.options()) fitted.add(option);
  std::ostringstream table;
  table << fitted;
  return table.str();
}

ExitCode print_help(const Verb& verb, const po::options_description& options) {
  fmt::print("{}\n\nusage: {}\n\n{}\n{}", verb.purpose, verb.usage, describe(options), kExitCodes);
  return ExitCode::kOk;
}

// Tells of a flag that is not known, and of the known one that it resembles.
std::string describe(const po::unknown_option& error, const po::options_description& options) {
  std::vector<std::string> flags;
  for (const auto& option : options.options()) flags.push_back("--" + option->long_name());
  flags.insert(flags.end(), {"--help", "--version", "--describe-flags"});
  const std::vector<std::string_view> known(flags.begin(), flags.end());
  return fmt::format("command line: {}; --help names the flags{}", error.what(),
                     did_you_mean(error.get_option_name(), known));
}

// Parses argv. A flag may be given in full, once; words that belong to no flag become values of
// --`words`.
po::variables_map parse(int argc, char** argv, const po::options_description& options,
                        const std::string& words) {
  using Style = po::command_line_style::style_t;
  const int style = Style::allow_long | Style::long_allow_adjacent | Style::long_allow_next;
  po::positional_options_description positional;
  positional.add(words.c_str(), -1);
  po::variables_map values;
  po::store(po::command_line_parser(argc, argv)
                .options(options)
                .positional(positional)
                .style(style)
                .run(),
            values);
  po::notify(values);
  return values;
}

// Flushes standard output. True if anything printed was lost, perhaps earlier, when its buffer was
// full.
bool is_output_lost() { return std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

constexpr const char* kLostOutput = "standard output could not be written";

ExitCode answer(const Verb& verb, int argc, char** argv, const po::options_description& options,
                const std::function<ExitCode(const po::variables_map&)>& body) {
  po::options_description all = options;
  all.add_options()("help", "print this and stop")("version", "print the version and stop")(
      "describe-flags", "print purpose, usage and flags as one JSON object and stop");
  po::options_description parsed = all;
  const std::string name = verb.words.empty() ? "word" : verb.words;
  if (all.find_nothrow(name, false) == nullptr) {
    parsed.add_options()(name.c_str(), po::value<std::vector<std::string>>());
  }
  const po::variables_map values = parse(argc, argv, parsed, name);
  const std::vector<std::string> words = text_list(values, name);
  const bool says_help = words == std::vector<std::string>{"help"};
  const bool asks_help = std::find(words.begin(), words.end(), "-h") != words.end() ||
                         (says_help && (verb.words.empty() || verb.has_help_word));
  if (asks_help || values.count("help") > 0) return print_help(verb, all);
  if (values.count("version") > 0) {
    fmt::print("frazil {}\n", FRAZIL_VERSION);
    return ExitCode::kOk;
  }
  if (values.count("describe-flags") > 0) {
    fmt::print("{}", list_flags(verb.name, verb.purpose, verb.usage, all));
    return ExitCode::kOk;
  }
  if (verb.words.empty() && !words.empty()) {
    refuse_flags(fmt::format("`{}`", words.front()), "only flags");
  }
  return body(values);
}

}  // namespace

void print_answer(std::string_view answer) {
  // An error of these writes shows in run_verb().
  if (answer.starts_with('{')) {
    fmt::print("{}", escape_controls(answer, ControlForm::kJson));
  } else {
    fmt::print("{}", show_on(find_terminal(), escape_controls(answer, ControlForm::kText)));
  }
  // A sentence on standard error that comes later stands behind the answer where both are one file.
  std::fflush(stdout);
}

void write_and_answer(const std::function<void()>& write, std::string_view answer) {
  std::exception_ptr failure;
  try {
    write();
  } catch (...) {
    failure = std::current_exception();
  }
  print_answer(answer);
  if (failure) std::rethrow_exception(failure);
}

int run_verb(const Verb& verb, int argc, char** argv, const po::options_description& options,
             const std::function<ExitCode(const po::variables_map&)>& body) {
  const Complaints complaints(verb, argc, argv);
  try {
    // A file beyond the limit of the shell is an error of its write, not the end of the program.
    std::signal(SIGXFSZ, SIG_IGN);
    const ExitCode code = answer(verb, argc, argv, options, body);
    return is_output_lost() ? complaints.tell(kLostOutput, ExitCode::kFailure)
                            : static_cast<int>(code);
  } catch (const InputError& error) {
    return complaints.tell(error);
  } catch (const InfeasibleError& error) {
    return complaints.tell(error.what(), ExitCode::kInfeasible);
  } catch (const PeerLost& error) {
    return complaints.tell(error.what(), ExitCode::kPeerLost);
  } catch (const Diverged& error) {
    return complaints.tell(error.what(), ExitCode::kDiverged);
  } catch (const po::unknown_option& error) {
    return complaints.tell(describe(error, options), ExitCode::kBadInput);
  } catch (const po::error& error) {
    return complaints.tell(fmt::format("command line: {}; --help names the flags", error.what()),
                           ExitCode::kBadInput);
  } catch (const std::bad_alloc& error) {
    const std::string_view sentence = error.what();
    const bool is_plain = sentence == std::bad_alloc().what();
    return complaints.tell(is_plain ? "out of memory" : sentence, ExitCode::kOutOfMemory);
  } catch (const std::exception& error) {
    return complaints.tell(is_output_lost() ? kLostOutput : error.what(), ExitCode::kFailure);
  }
}

}  // namespace frazil
