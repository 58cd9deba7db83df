#pragma once
// Runs a subcommand (here: verb): one catch, exit codes, and --help, --version and --describe-flags
// for every subcommand.

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "profiles/error.h"

namespace frazil {

struct Verb {
  std::string name;     // "plan"
  std::string purpose;  // one sentence for --help
  std::string usage;    // "frazil plan --profile FILE --cluster FILE ..."
  // The flag whose values are the words that belong to no flag; "": such words are refused. If
  // `options` do not describe that flag, it is taken, but not listed by --help.
  std::string words = "";
  // Whether the word `help` alone is the same as --help, as it is where there are no words.
  bool has_help_word = false;
};

// Parses argv with `options` (adds --help, also -h, --version and --describe-flags, see
// planner/verbs/flag_list.h), then runs `body`. With --json
// among the flags, an error is also answered as JSON (planner/answers/error_json.h), unless an
// answer is out. Turns what `body` throws into "frazil <verb>: <sentence>" on stderr and an exit
// code: InputError and bad flags 2 (8 and 9 for what the system refuses), InfeasibleError 3,
// PeerLost 6, std::bad_alloc 7, Diverged 10, anything else 1. The code is also 1 if standard output
// does not take all that is printed. Flags may not be abbreviated; only flags that are declared as
// lists may be repeated.
int run_verb(const Verb& verb, int argc, char** argv,
             const boost::program_options::options_description& options,
             const std::function<ExitCode(const boost::program_options::variables_map&)>& body);

// Prints an answer, a text or one JSON object, to standard output. Control characters are written
// out, and on a terminal a text is fitted to it (planner/answers/terminal_text.h). Everything that
// a subcommand answers goes through here.
void print_answer(std::string_view answer);

// Ends the work of a subcommand: `write` makes its files, then the answer is printed, even if a
// file could not be written. What `write` throws is rethrown when the answer is out.
void write_and_answer(const std::function<void()>& write, std::string_view answer);

}  // namespace frazil
