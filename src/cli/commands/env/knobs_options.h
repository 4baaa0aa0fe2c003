#pragma once

#include <string>

#include "domain/library_version.h"
#include "domain/vocabulary.h"

namespace diapason::cli {

// What `knobs` and `env` take for --library and --library-version.

// "nccl" or "rccl", in any case: nobody else's variables are known.
Result<Library> ParseNcclOrRccl(const std::string& name);
// All three numbers: what is read may change with the last one.
Result<int> ParseWholeVersion(const std::string& text);

// What is wrong with the values of --library and --library-version, with the option's name before
// it; both may be "".
Status CheckLibraryOptions(const std::string& library, const std::string& version);

// Whether a file is of the library that was asked for.
Status CheckLibraryFile(Library wanted, Library found, const std::string& path);
// Why no version is known: none of the files found counts. `wanted` is nullptr where nobody asked
// for one library; `of_wanted` of the `files` found are of it.
std::string WhyNoVersion(const Library* wanted, size_t of_wanted, size_t files);

}  // namespace diapason::cli
