"""The version of the package, which is that of the programs (a test compares it with CMakeLists.txt)."""

VERSION = "0.1.0"
