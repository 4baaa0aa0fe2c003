#pragma once

#include <string>
#include <vector>

#include "domain/library_version.h"
#include "domain/vocabulary.h"
#include "host/job_library.h"

namespace diapason::cli {

// Values of --library and --library-version of `knobs` and `env`.

// Parses "nccl" or "rccl" in any case; the catalogue has no variables of other libraries.
Result<Library> ParseNcclOrRccl(const std::string& name);
// All three numbers are required: the variables may change with a patch release.
Result<int> ParseWholeVersion(const std::string& text);

// The error in the values of --library and --library-version, prefixed with the option's name; both
// may be "".
Status CheckLibraryOptions(const std::string& library, const std::string& version);

// The version of the library that a job on this machine will use (host/job_library.h), else of the
// first of `files` (as host::FindLibraries has returned them) that belongs to it; 0 for none.
int VersionHere(const RootFs& tree, const Environment& environment, Library library,
                std::vector<host::LibraryFile> files);

// Fails if a file belongs to another library than the requested one.
Status CheckLibraryFile(Library wanted, Library found, const std::string& path);
// Why no version is known. `wanted` is nullptr if no library was requested; `of_wanted` of the
// `files` that were found belong to it.
std::string WhyNoVersion(const Library* wanted, size_t of_wanted, size_t files);

}  // namespace diapason::cli
