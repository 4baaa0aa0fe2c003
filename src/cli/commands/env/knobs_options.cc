#include "cli/commands/env/knobs_options.h"

#include "base/text.h"
#include "cli/framework/words.h"

namespace diapason::cli {

Result<Library> ParseNcclOrRccl(const std::string& name) {
  const Result<Library> library = ParseLibrary(name);
  if (library.ok() && AsksTuner(library.value())) return library;
  if (library.ok())
    return Invalid("only the variables of nccl and rccl are known, not those of " + name);
  return Invalid("there is no library '" + name + "'" + Suggestion(name, NcclOrRccl()));
}

Result<int> ParseWholeVersion(const std::string& text) {
  const Result<int> version = ParseLibraryVersion(text);
  if (version.ok() && Split(text, '.').size() < 3) {
    return Invalid("all three numbers are needed, e.g. " + text + ".9");
  }
  return version;
}

Status CheckLibraryOptions(const std::string& library, const std::string& version) {
  if (!library.empty()) {
    const Result<Library> read = ParseNcclOrRccl(library);
    if (!read.ok()) return read.status().WithContext("--library");
  }
  if (!version.empty()) {
    const Result<int> read = ParseWholeVersion(version);
    if (!read.ok()) return read.status().WithContext("--library-version");
  }
  return {};
}

Status CheckLibraryFile(Library wanted, Library found, const std::string& path) {
  if (wanted == found) return Status();
  return Invalid(path + " is " + std::string(LibraryTitle(found)) + "'s, and --library says " +
                 std::string(LibraryName(wanted)) + "; remove one of the two options");
}

int VersionHere(const RootFs& tree, const Environment& environment, Library library,
                std::vector<host::LibraryFile> files) {
  const std::vector<host::Torch> torches = host::FindTorch(tree, environment, files);
  const host::JobLibrary job = host::FindJobLibrary(tree, environment, library, torches, &files);
  int version = job.version;
  for (const host::LibraryFile& file : files) {
    if (version == 0 && file.library == library) version = file.version;
  }
  return version;
}

std::string WhyNoVersion(const Library* wanted, size_t of_wanted, size_t files) {
  const std::string rest = ", so only advice for all versions is given";
  if (wanted != nullptr && of_wanted == 0) {
    return "no " + std::string(LibraryTitle(*wanted)) + " was found here" + rest;
  }
  if (files == 0) return "no library was found" + rest;
  return "several libraries were found" + rest + "; choose with --library-file";
}

}  // namespace diapason::cli
