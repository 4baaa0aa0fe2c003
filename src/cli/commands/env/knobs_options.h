#pragma once

#include <string>

#include "domain/library_version.h"
#include "domain/vocabulary.h"

namespace diapason::cli {

// Values of --library and --library-version of `knobs` and `env`.

// Parses "nccl" or "rccl" in any case; the catalogue has no variables of other libraries.
Result<Library> ParseNcclOrRccl(const std::string& name);
// All three numbers are required: the variables may change with a patch release.
Result<int> ParseWholeVersion(const std::string& text);

// The error in the values of --library and --library-version, prefixed with the option's name; both
// may be "".
Status CheckLibraryOptions(const std::string& library, const std::string& version);

// Fails if a file belongs to another library than the requested one.
Status CheckLibraryFile(Library wanted, Library found, const std::string& path);
// Why no version is known. `wanted` is nullptr if no library was requested; `of_wanted` of the
// `files` that were found belong to it.
std::string WhyNoVersion(const Library* wanted, size_t of_wanted, size_t files);

}  // namespace diapason::cli
