#pragma once
// Lists the flags of a subcommand for programs. packaging/make_pages.py makes manual pages and
// shell completion of these lists, so that neither can differ from what the programs take.

#include <boost/program_options.hpp>
#include <string>

namespace frazil {

// Returns one JSON object in a line: "name", "purpose", "usage" and "flags", in the order of the
// descriptions, each with "name" (without dashes), "value" (what --help calls it, "" for a flag
// without one), "meaning", and "values" where only some words are taken (KnownValue).
std::string list_flags(const std::string& name, const std::string& purpose,
                       const std::string& usage,
                       const boost::program_options::options_description& options);

}  // namespace frazil
