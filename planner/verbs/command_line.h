#pragma once
// What every verb's main shares: one catch, exit codes, --help, --version.

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
  // The flag whose values words are that belong to no flag; "": no such word is taken. One that
  // `options` do not describe is taken, but not listed by --help.
  std::string words = "";
};

// Parses argv with `options` (adds --help, also -h, and --version), then runs `body` and turns what
// it throws into "frazil <verb>: <sentence>" on stderr and an exit code: InputError and bad flags
// 2, InfeasibleError 3, PeerLost 6, std::bad_alloc 7, anything else 1, so too a standard output
// that takes not all that is printed. Flags may not be shortened or doubled.
int run_verb(const Verb& verb, int argc, char** argv,
             const boost::program_options::options_description& options,
             const std::function<ExitCode(const boost::program_options::variables_map&)>& body);

// The end of a verb's work: `write` makes its files, then the answer is printed, also where a file
// could not be written; what `write` throws is thrown when the answer is out.
void write_and_answer(const std::function<void()>& write, std::string_view answer);

}  // namespace frazil
