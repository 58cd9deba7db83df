#pragma once
// The script of every page, page.js, which the build puts into the program so that a page stays one
// file.

#include <string_view>

namespace frazil {

std::string_view page_script();

}  // namespace frazil
