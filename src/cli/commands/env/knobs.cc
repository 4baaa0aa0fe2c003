#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "base/environment.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/env/knobs_options.h"
#include "cli/commands/env/knobs_text.h"
#include "cli/framework/command.h"
#include "cli/framework/command_line.h"
#include "cli/framework/read_by.h"
#include "cli/framework/words.h"
#include "knobs/catalogue.h"
#include "knobs/check.h"

namespace diapason::cli {
namespace {

using knobs::Catalogue;
using knobs::Knob;

struct KnobsOptions {
  std::vector<std::string> words;
  std::string library;
  std::string version;
  std::string group;
  bool set = false;
  bool json = false;
  bool markdown = false;
};

std::string UpperCase(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// Checked in the callback: an invalid option is a usage error.
KnobView ViewOf(const KnobsOptions& options) {
  KnobView view;
  view.present = options.set;
  const Status right = CheckLibraryOptions(options.library, options.version);
  if (!right.ok()) throw UsageError{"", right.message()};
  if (!options.library.empty()) {
    const Result<Library> library = ParseNcclOrRccl(options.library);
    view.library = library.value();
    view.library_given = true;
  }
  if (!options.version.empty()) {
    const Result<int> version = ParseWholeVersion(options.version);
    view.version = version.value();
    view.library_given = true;
  }
  return view;
}

bool LooksLikeName(const std::string& word) {
  const std::string upper = UpperCase(word);
  return upper.find('_') != std::string::npos &&
         (upper.starts_with("NCCL_") || upper.starts_with("RCCL_") || upper.starts_with("MSCCL"));
}

Status NoSuchName(const std::string& word) {
  const std::string upper = UpperCase(word);
  if (upper.starts_with("DIAPASON_")) {
    return NotFound(word + " is a setting of diapason; see `diapason settings`");
  }
  const std::string nearest = Catalogue::BuiltIn().NearestOfAll(upper);
  return NotFound("no version of NCCL or RCCL is known to read " + word +
                  (nearest.empty() ? "; search with words, e.g. `diapason knobs proxy latency`"
                                   : "; did you mean " + nearest + "?"));
}

struct KnobFilter {
  std::vector<const Knob*> knobs;
  bool whole = false;  // print every entry in full
};

Result<KnobFilter> Choose(const KnobsOptions& options) {
  const Catalogue& catalogue = Catalogue::BuiltIn();
  KnobFilter chosen;
  if (options.words.empty()) {
    for (const Knob& knob : catalogue.knobs()) chosen.knobs.push_back(&knob);
    return chosen;
  }
  const bool all_names = std::all_of(
      options.words.begin(), options.words.end(),
      [&](const std::string& word) { return catalogue.Find(UpperCase(word)) != nullptr; });
  if (all_names) {
    for (const std::string& word : options.words) {
      chosen.knobs.push_back(catalogue.Find(UpperCase(word)));
    }
    chosen.whole = true;
    return chosen;
  }
  for (const std::string& word : options.words) {
    const bool part = std::any_of(
        catalogue.knobs().begin(), catalogue.knobs().end(),
        [&word](const Knob& knob) { return knob.name.find(UpperCase(word)) != std::string::npos; });
    if ((LooksLikeName(word) || UpperCase(word).starts_with("DIAPASON_")) && !part) {
      return NoSuchName(word);
    }
  }
  chosen.knobs = catalogue.Search(options.words);
  if (chosen.knobs.empty()) {
    return NotFound("no catalogue entry contains all of these words: " + Join(options.words, ", "));
  }
  return chosen;
}

// For completion.
std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const Knob& knob : Catalogue::BuiltIn().knobs()) {
    if (knob.exists) names.push_back(knob.name);
  }
  return names;
}

Status CheckGroup(const std::string& group) {
  std::set<std::string> names;
  for (const Knob& knob : Catalogue::BuiltIn().knobs()) {
    if (ToLower(knob.group) == ToLower(group)) return Status();
    names.insert(knob.group);
  }
  return Invalid("there is no group '" + group + "'" +
                 Suggestion(group, std::vector<std::string>(names.begin(), names.end())));
}

// Variables that do not belong to collectives are private: neither their values nor their existence
// is shown.
bool IsSetHere(const Knob& knob) {
  return knobs::IsCollectiveVariable(knob.name) && ProcessEnvironment().Get(knob.name).has_value();
}

// Variables that no version reads are shown only on request.
bool Shown(const Knob& knob, const KnobsOptions& options, const KnobView& view) {
  if (!options.group.empty() && ToLower(knob.group) != ToLower(options.group)) return false;
  if (options.set && !IsSetHere(knob)) return false;
  if (!knob.exists) return !options.words.empty() || !options.group.empty() || options.set;
  if (!view.library_given) return true;
  const knobs::KnobReading& reading = knob.Of(view.library);
  return view.version == 0 ? reading.Ever() : reading.Reads(view.version);
}

Result<int> Show(const KnobsOptions& options, const KnobView& view) {
  ASSIGN_OR_RETURN(KnobFilter chosen, Choose(options));
  std::vector<const Knob*> knobs;
  for (const Knob* knob : chosen.knobs) {
    // A variable named by the user is shown, whichever library reads it.
    const bool named = chosen.whole && (!options.set || IsSetHere(*knob));
    if (named || Shown(*knob, options, view)) knobs.push_back(knob);
  }
  if (options.json) {
    std::fputs(KnobJson(knobs, view).c_str(), stdout);
    return kExitFine;
  }
  if (knobs.empty()) {
    if (options.set) {
      const bool all = options.words.empty() && options.group.empty() && !view.library_given;
      PrintOut("{} is set\n", all ? "no variable of NCCL or RCCL" : "none of them");
      return kExitFine;
    }
    return NotFound("no catalogue entry matches these options");
  }
  if (options.markdown) {
    std::fputs(KnobMarkdown(knobs, view).c_str(), stdout);
    return kExitFine;
  }
  if (chosen.whole || (knobs.size() == 1 && !options.set)) {
    bool first = true;
    for (const Knob* knob : knobs) {
      PrintOut("{}{}", first ? "" : "\n", KnobEntry(*knob, view));
      first = false;
    }
    return kExitFine;
  }
  std::fputs(KnobTables(knobs, view).c_str(), stdout);
  PrintOut("\n{}; `diapason knobs NAME` shows all details of a variable\n",
           Count(knobs.size(), "variable"));
  return kExitFine;
}

}  // namespace

void AddKnobs(CommandLine* parent, CommandAction* run) {
  auto options = std::make_shared<KnobsOptions>();
  CommandLine* command = parent->AddCommand(
      "knobs", "Show every environment variable of NCCL and RCCL: readers, default, advice");
  command
      ->AddOption("WORD", options->words,
                  "Names of variables, or words to search for in names and descriptions")
      ->WordsFrom(AllNames);
  command
      ->AddOption("--library", options->library,
                  "Show only variables that this library reads, with its defaults: nccl or rccl")
      ->TypeName("NAME")
      ->Words(NcclOrRccl());
  command
      ->AddOption("--library-version", options->version,
                  "Show only variables that this version reads, with its defaults, such as 2.28.9")
      ->TypeName("VERSION");
  command->AddOption("--group", options->group, "Show only this group, such as proxy")
      ->TypeName("NAME")
      ->Check(ReadBy(CheckGroup));
  command->AddFlag("--set", options->set,
                   "Show only variables that are set in this environment, with their values");
  command->Heading("Output");
  Option* json = command->AddJson(options->json);
  command->AddFlag("--markdown", options->markdown, "Print tables in Markdown")->Excludes(json);
  command->Example("diapason knobs NCCL_BUFFSIZE", "Show all details of one variable");
  command->Example("diapason knobs --set", "Show the variables that are set in this environment");
  command->Example("diapason knobs proxy --library-version 2.28.9",
                   "Search the variables of one version");
  command->SeeAlso({"env-check", "env-plan"});
  command->Callback([options, run] {
    const KnobView view = ViewOf(*options);
    *run = [options, view] { return Show(*options, view); };
  });
}

}  // namespace diapason::cli
