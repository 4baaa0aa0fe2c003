#include <algorithm>
#include <map>

#include "base/text.h"
#include "knobs/values.h"

namespace diapason::knobs {
namespace {

constexpr int kSelectsByFunction = 22403;
constexpr int kRescues = 20803;
constexpr int kChecksSubsystems = 23003;

// Words as the library compares them: case-insensitive, without other normalisation.
std::vector<std::string> WordsOf(const Knob& knob, const CheckedFor& checked_for) {
  std::vector<std::string> words;
  if (knob.name == "NCCL_PROTO") {
    for (int i = kLl; i <= kSimple; ++i) {
      words.push_back(FoldName(ProtocolName(checked_for.library, i)));
    }
    return words;
  }
  // The first version of NCCL with each algorithm.
  static const std::map<int, int> since = {{kTree, 0},
                                           {kRing, 0},
                                           {kCollNetDirect, 21403},
                                           {kCollNetChain, 21403},
                                           {kNvls, 21701},
                                           {kNvlsTree, 21801},
                                           {kPat, 22304}};
  for (const auto& [algorithm, version] : since) {
    if (checked_for.version != 0 && checked_for.version < version) continue;
    words.push_back(
        FoldName(AlgorithmName(checked_for.library, Collective::kAllReduce, algorithm)));
  }
  if (checked_for.version < 21403) words.emplace_back("collnet");
  return words;
}

std::vector<std::string> Functions() {
  std::vector<std::string> names;
  for (int i = 0; i < kAskedCollectiveCount; ++i) {
    names.push_back(FoldName(CollectiveName(static_cast<Collective>(i))));
  }
  return names;
}

bool Has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string Failure(const CheckedFor& checked_for) {
  if (checked_for.version == 0) {
    return "no communicator can be made since 2.24, and before it the word is skipped silently";
  }
  return checked_for.version >= kSelectsByFunction
             ? "no communicator can be made"
             : "the word is skipped silently, and what is left may be nothing";
}

ValueVerdict Bad(Severity severity, std::string title, std::string action) {
  return {"env.bad-value", severity, std::move(title), std::move(action)};
}

// The list for a function: its own, or else the one for all.
const Selection::Part* PartOf(const Selection& selection, const std::string& function) {
  const Selection::Part* found = nullptr;
  for (const Selection::Part& part : selection.parts) {
    if (part.function.empty() || part.function == function) found = &part;
  }
  return found;
}

// Functions that none of the remaining algorithms supports.
std::vector<std::string> LostFunctions(const Selection& selection, Library library) {
  std::vector<std::string> lost;
  for (int i = 0; i < kAskedCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const std::string function = FoldName(CollectiveName(collective));
    const Selection::Part* part = PartOf(selection, function);
    if (part == nullptr) continue;
    bool any = false;
    for (int algorithm = kTree; algorithm <= kPat; ++algorithm) {
      const std::string word = FoldName(AlgorithmName(library, Collective::kAllReduce, algorithm));
      any = any ||
            (Has(part->words, word) != part->negated && PairExists(collective, algorithm, kSimple));
    }
    if (!any) lost.push_back(function);
  }
  return lost;
}

// The libraries do not strip blanks in lists: " tree" is not "tree".
std::string WithoutBlanks(const std::string& value) {
  std::string without;
  for (const char c : value) {
    if (c != ' ' && c != '\t') without += c;
  }
  return without;
}

}  // namespace

Selection ReadSelection(const std::string& value) {
  Selection selection;
  for (const std::string_view entry : Split(value, ';')) {
    if (entry.empty()) continue;
    Selection::Part part;
    std::string_view list = entry;
    const size_t colon = entry.find(':');
    if (colon != std::string_view::npos) {
      part.function = ToLower(entry.substr(0, colon));
      list = entry.substr(colon + 1);
    }
    if (list.starts_with('^')) {
      part.negated = true;
      list.remove_prefix(1);
    }
    for (const std::string_view word : Split(list, ',')) {
      if (!word.empty()) part.words.push_back(ToLower(word));
    }
    selection.parts.push_back(std::move(part));
  }
  return selection;
}

bool Selection::Allows(const std::string& word) const {
  // A function that no part names has all of them.
  if (parts.empty() || !parts[0].function.empty()) return true;
  return std::any_of(parts.begin(), parts.end(),
                     [&word](const Part& part) { return Has(part.words, word) != part.negated; });
}

bool Selection::Only(const std::vector<std::string>& words) const {
  if (parts.empty() || !parts[0].function.empty()) return false;
  return std::all_of(parts.begin(), parts.end(), [&words](const Part& part) {
    return !part.negated && !part.words.empty() &&
           std::all_of(part.words.begin(), part.words.end(),
                       [&words](const std::string& word) { return Has(words, word); });
  });
}

std::vector<ValueVerdict> JudgeSelection(const Knob& knob, const std::string& value,
                                         const CheckedFor& checked_for) {
  const std::vector<std::string> words = WordsOf(knob, checked_for);
  const Selection selection = ReadSelection(value);
  std::vector<ValueVerdict> verdicts;
  const bool by_function = value.find(':') != std::string::npos || selection.parts.size() > 1;
  if (by_function && checked_for.version != 0 && checked_for.version < kSelectsByFunction) {
    return {Bad(Severity::kError,
                knob.name + "=" + value + " selects by function, which is understood since 2.24",
                "Write one list for all functions, or use a newer library")};
  }
  for (size_t i = 0; i < selection.parts.size(); ++i) {
    const Selection::Part& part = selection.parts[i];
    if (i > 0 && part.function.empty()) {
      verdicts.push_back(Bad(Severity::kError,
                             knob.name + "=" + value +
                                 ": only the first list may stand without a function; no "
                                 "communicator can be made",
                             "Write function:list after every ';'"));
    } else if (!part.function.empty() && !Has(Functions(), part.function)) {
      verdicts.push_back(
          Bad(Severity::kError,
              knob.name + ": '" + part.function + "' is no function; no communicator can be made",
              "Use " + Join(Functions(), ", ")));
    }
    for (const std::string& word : part.words) {
      if (Has(words, word)) continue;
      const std::string closest = ClosestName(WithoutBlanks(word), words);
      verdicts.push_back(
          Bad(Severity::kError,
              knob.name + "=" + value + ": '" + word + "' is not known; " + Failure(checked_for),
              closest.empty() ? "Use " + Join(words, ", ")
                              : "Write " + closest + ", without anything around it"));
    }
  }
  if (knob.name == "NCCL_ALGO" && verdicts.empty() &&
      (checked_for.version == 0 || checked_for.version >= kSelectsByFunction)) {
    const std::vector<std::string> lost = LostFunctions(selection, checked_for.library);
    if (!lost.empty()) {
      verdicts.push_back(Bad(Severity::kWarning,
                             knob.name + "=" + value + " leaves " + Join(lost, ", ") +
                                 " without an algorithm: such calls fail" +
                                 (checked_for.version == 0 ? " since 2.24" : ""),
                             "Name the function it is for, e.g. allreduce:" + value));
    }
  }
  if (knob.name == "NCCL_PROTO" && verdicts.empty() && !selection.parts.empty()) {
    // NCCL checks whether LL128 is safe only if the variable is not set.
    if (selection.Allows("ll128") && checked_for.library == Library::kNccl &&
        selection.parts[0].function.empty()) {
      // In a file the GPUs are not known: the one who wrote it may know that it is safe there.
      verdicts.push_back({"env.unsafe-value",
                          checked_for.file ? Severity::kNote : Severity::kWarning,
                          "NCCL_PROTO=" + value +
                              " turns LL128 on without the check whether it is safe between these "
                              "GPUs; where it is not, data is corrupted silently",
                          "Unset NCCL_PROTO, or name the protocols without LL128"});
    }
    if (selection.Only({"ll"})) {
      verdicts.push_back(
          {"env.fights-tuner", Severity::kWarning,
           "NCCL_PROTO=" + value +
               " forces LL on messages of every size; it moves 4 bytes of data in 8 and reaches at "
               "most half of the bandwidth",
           "Unset NCCL_PROTO: the library uses LL by itself where it is faster"});
    }
  }
  return verdicts;
}

std::vector<ValueVerdict> JudgeEmptySelection(const Knob& knob, const CheckedFor& checked_for) {
  const std::string action = "Unset it";
  if (checked_for.version >= kSelectsByFunction) {
    return {Bad(Severity::kNote, knob.name + " is set to nothing; the library uses its default",
                action)};
  }
  // Without CollNet, NCCL treats a list without any other algorithm as a request for CollNet, and
  // falls back to rings and trees. Protocols have no such fallback.
  const bool algorithms = knob.name == "NCCL_ALGO";
  const bool rescued = algorithms && (checked_for.version == 0 || checked_for.version >= kRescues);
  const std::string left = rescued      ? "only ring and tree, or nothing where CollNet is on"
                           : algorithms ? "no algorithm, so that calls fail"
                                        : "no protocol, so that calls fail";
  if (checked_for.version == 0) {
    return {Bad(Severity::kNote,
                knob.name + " is set to nothing: before 2.24 that leaves " + left +
                    "; since then the library uses its default",
                action)};
  }
  return {Bad(rescued ? Severity::kWarning : Severity::kError,
              knob.name + " is set to nothing, which is a list before 2.24: it leaves " + left,
              action)};
}

std::vector<ValueVerdict> JudgeList(const Knob& knob, const std::string& value,
                                    const CheckedFor& checked_for) {
  std::vector<ValueVerdict> verdicts;
  std::string_view list = value;
  if (knob.name == "NCCL_SOCKET_IFNAME" && value.size() < 2) {
    verdicts.push_back(Bad(Severity::kError,
                           knob.name + "=" + value +
                               " is too short: names of one letter are not "
                               "looked at",
                           "Write the interface's name"));
  }
  const bool devices = knob.name == "NCCL_SOCKET_IFNAME" || knob.name == "NCCL_IB_HCA";
  if (list.starts_with('^')) list.remove_prefix(1);
  if (devices && list.starts_with('=')) list.remove_prefix(1);
  if (devices) {
    if (list.starts_with('^')) {
      verdicts.push_back(Bad(Severity::kError,
                             knob.name + "=" + value + ": '^' stands before '=', not behind it",
                             "Write " + knob.name + "=^=" + std::string(list.substr(1))));
    } else if (list.find_first_of("^= \t") != std::string_view::npos) {
      verdicts.push_back(Bad(Severity::kError,
                             knob.name + "=" + value +
                                 ": '^' and '=' count at the very beginning only, for the whole "
                                 "list, and blanks are taken for a part of a name",
                             "Write " + knob.name + "=name,name or ^name,name"));
    }
    return verdicts;
  }
  if (knob.values.empty() || knob.type != KnobType::kList) return verdicts;
  const std::vector<std::string> words = knob.ValuesOf(checked_for.library, checked_for.version);
  const bool subsystems = knob.name == "NCCL_DEBUG_SUBSYS";
  for (const std::string_view item : Split(list, ',')) {
    // Since 2.30 blanks are stripped.
    const std::string word(subsystems ? Trim(item) : item);
    if (word.empty()) continue;
    const bool known = std::any_of(words.begin(), words.end(), [&](const std::string& one) {
      return one == word || (knob.fold_case && ToLower(one) == ToLower(word));
    });
    if (known) continue;
    std::string title = knob.name + "=" + value + ": '" + word + "' is not known";
    if (subsystems && checked_for.library == Library::kNccl) {
      title += checked_for.version >= kChecksSubsystems
                   ? "; the whole list is dropped for the default"
               : checked_for.version != 0 ? "; it is skipped silently"
                                          : "";
    }
    const std::string closest = ClosestName(word, words);
    verdicts.push_back(Bad(Severity::kError, title,
                           closest.empty() ? "Use " + AllowedText(knob) : "Write " + closest));
  }
  return verdicts;
}

}  // namespace diapason::knobs
