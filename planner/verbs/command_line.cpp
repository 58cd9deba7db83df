#include "planner/verbs/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string_view>
#include <vector>

#include "planner/verbs/flags.h"

namespace frazil {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kExitCodes =
    "exit codes:\n"
    "  0   done\n"
    "  1   failed, or a bug\n"
    "  2   bad usage or input\n"
    "  3   valid but infeasible: nothing fits into memory, or no schedule takes the "
    "plan\n"
    "  4   verify: the run differs from its costs\n"
    "  5   verify: measured too unsteadily to tell\n"
    "  6   another rank of the run was lost\n"
    "  7   out of memory\n"
    "  10  train: the run diverged: a loss, a gradient or a weight is not finite\n"
    "  75  please start the run again\n"
    "  128 + n  ended by signal n\n";

int complain(const Verb& verb, std::string_view sentence, ExitCode code) {
  fmt::print(stderr, "frazil {}: {}\n", verb.name, to_one_line(sentence));
  return static_cast<int>(code);
}

ExitCode print_help(const Verb& verb, const po::options_description& options) {
  std::ostringstream table;
  table << options;
  fmt::print("{}\n\nusage: {}\n\n{}\n{}", verb.purpose, verb.usage, table.str(), kExitCodes);
  return ExitCode::kOk;
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

int complain_of_output(const Verb& verb) {
  return complain(verb, "standard output could not be written", ExitCode::kFailure);
}

ExitCode answer(const Verb& verb, int argc, char** argv, const po::options_description& options,
                const std::function<ExitCode(const po::variables_map&)>& body) {
  po::options_description all = options;
  all.add_options()("help", "print this and stop")("version", "print the version and stop");
  po::options_description parsed = all;
  const std::string name = verb.words.empty() ? "word" : verb.words;
  if (all.find_nothrow(name, false) == nullptr) {
    parsed.add_options()(name.c_str(), po::value<std::vector<std::string>>());
  }
  const po::variables_map values = parse(argc, argv, parsed, name);
  const std::vector<std::string> words = text_list(values, name);
  const bool asks_help = std::find(words.begin(), words.end(), "-h") != words.end();
  if (asks_help || values.count("help") > 0) return print_help(verb, all);
  if (values.count("version") > 0) {
    fmt::print("frazil {}\n", FRAZIL_VERSION);
    return ExitCode::kOk;
  }
  if (verb.words.empty() && !words.empty()) {
    refuse_flags(fmt::format("`{}`", words.front()), "only flags");
  }
  return body(values);
}

}  // namespace

void write_and_answer(const std::function<void()>& write, std::string_view answer) {
  std::exception_ptr failure;
  try {
    write();
  } catch (...) {
    failure = std::current_exception();
  }
  // An error of this write shows in run_verb().
  std::fwrite(answer.data(), 1, answer.size(), stdout);
  if (!failure) return;
  std::fflush(stdout);
  std::rethrow_exception(failure);
}

int run_verb(const Verb& verb, int argc, char** argv, const po::options_description& options,
             const std::function<ExitCode(const po::variables_map&)>& body) {
  try {
    // A file beyond the limit of the shell is an error of its write, not the end of the program.
    std::signal(SIGXFSZ, SIG_IGN);
    const ExitCode code = answer(verb, argc, argv, options, body);
    return is_output_lost() ? complain_of_output(verb) : static_cast<int>(code);
  } catch (const InputError& error) {
    return complain(verb, error.what(), ExitCode::kBadInput);
  } catch (const InfeasibleError& error) {
    return complain(verb, error.what(), ExitCode::kInfeasible);
  } catch (const PeerLost& error) {
    return complain(verb, error.what(), ExitCode::kPeerLost);
  } catch (const Diverged& error) {
    return complain(verb, error.what(), ExitCode::kDiverged);
  } catch (const po::error& error) {
    return complain(verb, fmt::format("command line: {}; --help names the flags", error.what()),
                    ExitCode::kBadInput);
  } catch (const std::bad_alloc& error) {
    const std::string_view sentence = error.what();
    const bool is_plain = sentence == std::bad_alloc().what();
    return complain(verb, is_plain ? "out of memory" : sentence, ExitCode::kOutOfMemory);
  } catch (const std::exception& error) {
    if (is_output_lost()) return complain_of_output(verb);
    return complain(verb, error.what(), ExitCode::kFailure);
  }
}

}  // namespace frazil
