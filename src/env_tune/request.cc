#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/encoding.h"
#include "base/file.h"
#include "base/text.h"
#include "env_tune/session.h"

namespace diapason::env_tune {
namespace {

// Whether a file could be made there, or replaced by another; `in_place`: written into.
Status CheckWritable(const std::string& path, bool in_place, const char* option) {
  const auto failed = [&](const std::string& why) {
    return IoError(std::string(option) + ": cannot write '" + path + "': " + why);
  };
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode)) return failed("it is not a regular file");
  if (there && in_place)
    return ::access(path.c_str(), W_OK) == 0 ? Status() : failed(ErrnoText(errno));
  const size_t slash = path.rfind('/');
  if (slash + 1 == path.size()) return failed("it names a folder");
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::stat(folder.c_str(), &info) != 0) return failed(ErrnoText(errno));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return failed(ErrnoText(errno));
  return {};
}

}  // namespace

std::string_view MeasureName(Measure measure) {
  static constexpr std::string_view kNames[] = {"wall time", "a number in the output",
                                                "geometric mean of the benchmark's times",
                                                "median step of the iteration proxy"};
  return kNames[static_cast<size_t>(measure)];
}

std::string TuneFingerprint(const TuneRequest& request) {
  const ExperimentOptions& design = request.design;
  std::string text;
  const auto add = [&text](const std::string& part) { text += Format("{}:", part.size()) + part; };
  for (const std::string& word : request.command) add(word);
  add(std::string(MeasureName(request.measure)));
  add(request.pattern);
  add(Format("{} {:.17g} {:.17g} {} {} {} {} {} {}", static_cast<int>(request.pick), design.alpha,
             design.min_gain, design.higher ? 1 : 0, design.baseline_runs, design.most_blocks,
             design.validation_blocks, design.abba ? 1 : 0, design.seed));
  for (const CostLimit& limit : {design.max_cpu, design.max_memory}) {
    add(Format("{} {:.17g}", static_cast<int>(limit.kind), limit.value));
  }
  for (const KnobValue& candidate : request.candidates) add(candidate.name + "=" + candidate.value);
  if (request.candidates.empty()) {
    add(Format("{} {}", request.library ? static_cast<int>(*request.library) : -1,
               request.version));
    add(request.binds ? std::string(BindsName(*request.binds)) : "");
  }
  return Format("fnv1a64:{:016x}", Fnv1a64(text));
}

Status CheckOutputs(const TuneRequest& request, const std::string& report) {
  if (!report.empty()) {
    RETURN_IF_ERROR(CheckWritable(report, false, "--output"));
  }
  if (request.state.empty()) return {};
  return CheckWritable(request.state, request.resume, "--state");
}

}  // namespace diapason::env_tune
