#include <algorithm>

#include "base/settings.h"
#include "base/text.h"
#include "domain/library_version.h"
#include "knobs/context.h"
#include "knobs/values.h"

namespace diapason::knobs {
namespace {

// Names of these families that other programs read; a '*' at the end matches anything.
struct NamesReader {
  const char* name;
  const char* who;
};
constexpr NamesReader kReaders[] = {
    {"TORCH_*", "PyTorch"},
    {"GLOO_*", "Gloo"},
    {"HSA_*", "the ROCm runtime"},
    {"CUDA_*", "CUDA"},
    {"MSCCLPP_*", "MSCCL++"},
    {"OFI_NCCL_*", "the AWS OFI plugin"},
    {"OFI_HISTOGRAM_*", "the AWS OFI plugin"},
    {"NCCL_OFI_*", "the AWS OFI plugin"},
    {"FI_*", "libfabric"},
    {"UCX_*", "UCX"},
    {"SHARP_*", "the SHARP library"},
    {"NCCL_INSPECTOR_*", "NCCL's inspector profiler plugin"},
    {"NCCL_PROFILE_*", "NCCL's example profiler plugin"},
    {"NCCL_PROFILER_CE_*", "NCCL's example profiler plugin"},
    {"NCCL_EP_*", "NCCL's expert-parallel library"},
    {"NCCL_TESTS_*", "nccl-tests"},
    {"OMPI_*", "Open MPI"},
    {"MPICH_*", "MPICH"},
    {"OMP_*", "OpenMP"},
    {"HIP_*", "HIP"},
    {"ROCR_*", "the ROCm runtime"},
    {"PSM*", "PSM"},
    {"NCCL_GPUDIRECTTCPX_*", "Google's TCPX network plugin"},
    {"NCCL_FASTRAK_*", "Google's TCPXO (FasTrak) network plugin"},
    {"NCCL_GIB_*", "Google's gIB network plugin"},
    {"NCCL_DYNAMIC_CHUNK_SIZE", "Google's network plugins"},
    {"NCCL_SHIMNET_*", "Google's network plugins"},
    {"NCCL_UCX_*", "the RDMA-SHARP plugin"},
    {"NCCL_SHARP_*", "the RDMA-SHARP plugin"},
    {"NCCL_IBEXT_*", "the RDMA-SHARP plugin"},
    {"ACCL_PROFILER_*", "RCCL's accl profiler plugin"},
    {"NCCL_HOME", "build systems"},
    {"NCCL_ROOT", "build systems"},
    {"NCCL_ROOT_DIR", "build systems"},
    {"NCCL_DIR", "build systems"},
    {"NCCL_INCLUDE_DIR", "build systems"},
    {"NCCL_LIB_DIR", "build systems"},
    {"NCCL_LIBRARY", "build systems"},
    {"NCCL_PATH", "build systems"},
    {"NCCL_VERSION", "the makers of container images, as a label"},
    {"NCCL_VER", "the makers of container images, as a label"},
    {"RCCL_ROOT", "build systems"},
    {"RCCL_HOME", "build systems"},
    {"RCCL_TESTS_*", "rccl-tests"},
};

bool IsOurs(const std::string& name) {
  if (name.starts_with("DIAPASON_")) return true;
  return std::any_of(SettingTable().begin(), SettingTable().end(),
                     [&name](const SettingInfo& info) { return name == info.other_name; });
}

bool IsLibraryFamily(const std::string& name) {
  const std::string lower = ToLower(name);
  return lower.starts_with("nccl_") || lower.starts_with("rccl_") || lower.starts_with("msccl") ||
         lower.starts_with("ncll_");
}

std::string UpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : static_cast<char>(c);
  });
  return text;
}

// The first variable that a sentence names.
const Knob* NamedKnob(const std::string& sentence, const Catalogue& catalogue) {
  std::string word;
  for (size_t i = 0; i <= sentence.size(); ++i) {
    const char c = i < sentence.size() ? sentence[i] : ' ';
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
      continue;
    }
    const Knob* knob = word.empty() ? nullptr : catalogue.Find(word);
    if (knob != nullptr) return knob;
    word.clear();
  }
  return nullptr;
}

class NameChecker {
 public:
  explicit NameChecker(CheckContext* context)
      : context_(*context),
        library_(context->checked_for().library),
        version_(context->checked_for().version) {}

  void Check(const Assignment& assignment) {
    const std::string& name = assignment.name;
    if (IsOurs(name)) return;
    const Knob* knob = context_.catalogue().Find(name);
    if (knob == nullptr) {
      // Its own variable: the script that sets it uses it as well.
      if (assignment.own) return;
      const std::string reader = OtherReader(name);
      if (!reader.empty()) {
        OfPlugin(name, reader);
      } else if (IsLibraryFamily(name)) {
        Unknown(name);
      } else {
        SlipOfFamily(name);
      }
    } else if (!knob->exists) {
      if (!assignment.own) Ghost(*knob);
    } else if (knob->OnlyOfPlugin() || Readable(*knob)) {
      Deprecated(*knob, assignment);
      if (!assignment.known) return;
      for (const ValueVerdict& verdict :
           JudgeValue(*knob, assignment.value, context_.checked_for())) {
        context_.Add(verdict.id, verdict.severity, verdict.title, {name}, verdict.action);
      }
    }
  }

 private:
  // Of such a version not every variable is in the catalogue.
  bool Newer() const { return version_ > Catalogue::NewestComplete(library_); }
  std::string NotKnown(const std::string& name) const {
    return name + " is not known to this release of diapason, which knows all variables of " +
           context_.Title() + " up to " + LibraryVersionText(Catalogue::NewestComplete(library_)) +
           ": " + context_.TitleVersion() + " may read it";
  }

  // A name of a plugin's family that is not in the plugin's table: of another release, or a slip.
  void OfPlugin(const std::string& name, const std::string& reader) {
    const std::string slip = SlipOfOthers(name);
    if (!slip.empty()) {
      return context_.Add("env.unknown-name", Severity::kError,
                          reader + " is not known to read " + name, {name}, slip + " is meant");
    }
    const std::string nearest = context_.catalogue().NearestOfReader(name, reader);
    if (nearest.empty()) return;
    // Plugins have names that the tables lack: in a file only a slip is reported.
    if (context_.checked_for().file && !IsSlip(name, nearest)) return;
    context_.Add("env.unknown-name", Severity::kWarning,
                 name + " is not a known variable of " + reader, {name},
                 nearest + " is the nearest that is known");
  }

  // "CCL_DEBUG" for NCCL_DEBUG.
  void SlipOfFamily(const std::string& name) {
    const size_t bar = name.find('_');
    if (bar == std::string::npos || name == "NCCL" + name.substr(bar)) return;
    const Knob* meant = context_.catalogue().Find("NCCL" + name.substr(bar));
    if (meant == nullptr || !meant->exists || EditDistance(name.substr(0, bar), "NCCL") != 1)
      return;
    context_.Add("env.unknown-name", Severity::kError,
                 "no version of NCCL or RCCL is known to read " + name, {name},
                 meant->name + " is the nearest that exists");
  }

  void Unknown(const std::string& name) {
    const std::string upper = UpperCase(name);
    if (upper != name && context_.catalogue().Find(upper) != nullptr) {
      return context_.Add("env.unknown-name", Severity::kError,
                          "no library reads " + name + ": names are written in capitals", {name},
                          "Write " + upper);
    }
    std::string nearest = context_.catalogue().Nearest(name, library_, version_);
    if (nearest.empty()) nearest = context_.catalogue().NearestOfAll(name);
    const bool file = context_.checked_for().file;
    if (IsBuildName(name) && (nearest.empty() || !IsSlip(name, nearest))) return;
    if (Newer()) {
      return context_.Add("env.unknown-name",
                          nearest.empty() ? Severity::kNote : Severity::kWarning, NotKnown(name),
                          {name}, nearest.empty() ? "" : nearest + " is the nearest that is known");
    }
    // In a file it may be meant for the program that the file starts.
    const Severity severity = nearest.empty()                  ? Severity::kWarning
                              : file && !IsSlip(name, nearest) ? Severity::kWarning
                                                               : Severity::kError;
    context_.Add("env.unknown-name", severity,
                 "no version of NCCL or RCCL is known to read " + name, {name},
                 nearest.empty() ? std::string("Unset it, unless a plugin") +
                                       (file ? " or the program itself" : "") + " reads it"
                                 : nearest + " is the nearest that exists");
  }

  void Ghost(const Knob& knob) {
    const bool torch = knob.successor.starts_with("TORCH_NCCL_");
    if (torch && knob.text.find("old name") != std::string::npos) {
      return context_.Add("env.deprecated", Severity::kNote,
                          knob.name +
                              " is not NCCL's: it is an old name of PyTorch's, which "
                              "PyTorch 2.2 and later still take",
                          {knob.name}, "Use " + knob.successor);
    }
    context_.Add("env.unknown-name", knob.successor.empty() ? Severity::kWarning : Severity::kError,
                 "no version of NCCL or RCCL reads " + knob.name, {knob.name},
                 knob.successor.empty() ? "Unset it" : "Use " + knob.successor);
  }

  bool Readable(const Knob& knob) {
    const KnobReading& reading = knob.Of(library_);
    if (!reading.Ever() && Newer()) {
      context_.Add("env.not-read-here", Severity::kNote, NotKnown(knob.name), {knob.name}, "");
      return false;
    }
    if (!reading.Ever()) {
      const CheckedFor& for_what = context_.checked_for();
      if (for_what.either) return true;
      const Library other = library_ == Library::kRccl ? Library::kNccl : Library::kRccl;
      context_.Add("env.not-read-here", for_what.guessed ? Severity::kNote : Severity::kWarning,
                   knob.name + " is a variable of " + std::string(LibraryTitle(other)) + "; " +
                       context_.Title() + " does not read it",
                   {knob.name}, NotReadAction(knob));
      return false;
    }
    if (version_ == 0) {
      // The version is unknown: a variable that the newest does not read may still be read.
      // In a file only variables that went long ago are reported.
      constexpr int kLongAgo = 22000;
      const bool recent = context_.checked_for().file && reading.spans.back().last >= kLongAgo;
      if (!reading.Reads(0) && !context_.checked_for().either && !recent) {
        context_.Add("env.not-read-here", Severity::kNote,
                     knob.name + " is read by " + context_.Title() + " " +
                         SpansText(reading.spans) + " only",
                     {knob.name}, NotReadAction(knob));
      }
      return true;
    }
    if (reading.Reads(version_)) return true;
    const bool too_new = version_ < reading.spans.front().first;
    context_.Add("env.not-read-here", Severity::kWarning,
                 knob.name + (too_new ? " is not read yet by " : " is not read any more by ") +
                     context_.TitleVersion() + ": it is read by " + SpansText(reading.spans),
                 {knob.name}, NotReadAction(knob));
    return false;
  }

  static std::string NotReadAction(const Knob& knob) {
    return knob.successor.empty() ? "Unset it" : "Use " + knob.successor;
  }

  void Deprecated(const Knob& knob, const Assignment& assignment) {
    // It works where it is read: nothing that the reader of a file has to know.
    if (context_.checked_for().file) return;
    if (knob.name == "NCCL_LAUNCH_MODE") {
      if (!assignment.known || assignment.value != "PARALLEL") return;
      return context_.Add("env.deprecated", Severity::kNote,
                          "NCCL_LAUNCH_MODE=PARALLEL is the default since 2.9, and has nothing to "
                          "do with one collective after another",
                          {knob.name}, "Unset it");
    }
    // AMD's guides still name these two for RCCL.
    if (library_ == Library::kRccl && knob.name.ends_with("_NCHANNELS")) return;
    if (knob.successor.empty()) return;
    const Knob* next = NamedKnob(knob.successor, context_.catalogue());
    if (next == &knob) return;
    if (next != nullptr && !context_.Reads(next->name)) return;
    context_.Add("env.deprecated", Severity::kNote, knob.name + " is out of date", {knob.name},
                 "Use " + knob.successor);
  }

  CheckContext& context_;
  const Library library_;
  const int version_;
};

// Settings of diapason are checked by its own reader.
void CheckOurs(CheckContext* context) {
  std::map<std::string, std::string> ours;
  for (const auto& [name, assignment] : context->live()) {
    if (IsOurs(name) && assignment->known) ours[name] = assignment->value;
  }
  const Settings settings = Settings::Read(MapEnvironment(ours));
  const auto about = [&ours](const std::string& sentence) {
    for (const auto& [name, value] : ours) {
      if (sentence.starts_with(name)) return name;
    }
    return std::string();
  };
  for (const std::string& problem : settings.problems()) {
    context->Add("env.bad-value", Severity::kError, problem + "; the plugin steps aside",
                 {about(problem)}, "Correct it: `diapason settings` says what it takes");
  }
  for (const std::string& warning : settings.warnings()) {
    context->Add("env.unknown-name", Severity::kError, warning, {about(warning)},
                 "Correct the name");
  }
}

}  // namespace

std::string OtherReader(const std::string& name) {
  if (IsOurs(name)) return "our plugin";
  for (const NamesReader& reader : kReaders) {
    const std::string_view pattern = reader.name;
    const bool prefix = pattern.ends_with('*');
    if (prefix ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern) {
      return reader.who;
    }
  }
  return "";
}

void CheckNames(const std::vector<Assignment>& assignments, CheckContext* context) {
  NameChecker checker(context);
  for (const Assignment& assignment : assignments) {
    if (!assignment.overridden) checker.Check(assignment);
  }
  CheckOurs(context);
}

}  // namespace diapason::knobs
