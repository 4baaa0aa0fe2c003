#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "domain/vocabulary.h"

namespace diapason::knobs {

// How a library parses the value of a variable.
enum class KnobType : uint8_t {
  kNumber,  // strtoll with base 0: hexadecimal and octal too, trailing text ignored, no K or M
  kSwitch,  // a number of which only zero or non-zero counts
  kWord,    // one of `values`, case-sensitive unless fold_case
  kList,    // several words, separated by commas
  kText,    // free: a path, an interface, a host
};
std::string_view KnobTypeName(KnobType type);

// A range of versions, both ends included. `last` 0: still read by the newest known version.
struct VersionSpan {
  int first = 0;
  int last = 0;
  bool Holds(int version) const { return version >= first && (last == 0 || version <= last); }
};
// "2.14.3 to 2.30.4", "since 2.4.2", several separated by commas; "never" for none.
std::string SpansText(const std::vector<VersionSpan>& spans);

// One library's use of a variable.
struct KnobReading {
  std::vector<VersionSpan> spans;  // empty: this library never reads it
  std::string default_text;        // the value if it is not set; "" for none
  // Earlier defaults: the version from which each was in force, until the next entry.
  std::vector<std::pair<int, std::string>> earlier_defaults;
  // Words that this library alone takes, beside Knob::values, from a version on.
  std::vector<std::pair<int, std::string>> own_values;
  bool Reads(int version) const;  // 0: the newest known
  std::string DefaultAt(int version) const;
  bool Ever() const { return !spans.empty(); }
};

// Advice for a kind of workload; "" if there is none.
struct KnobAdvice {
  std::string small;  // small messages
  std::string large;
  std::string many;  // many concurrent operations
  std::string few;
};

// An environment variable that NCCL or RCCL reads, or one of their plugins, or that users set
// although none does.
struct Knob {
  std::string name;
  // The plugin or other library that reads it: "aws-ofi-nccl"; "" if only NCCL or RCCL do.
  std::string reader;
  KnobType type = KnobType::kText;
  KnobReading nccl;
  KnobReading rccl;
  std::vector<std::string> values;  // the words; for enumerated numbers "0", "1", "2"
  bool fold_case = false;           // words are case-insensitive
  bool has_low = false;
  bool has_high = false;
  int64_t low = 0;
  int64_t high = 0;
  std::vector<int64_t> special;  // valid numbers outside the range: -1, -2
  std::string group;             // "proxy", "network", "infiniband", "shared memory", ...
  std::string text;              // what it does
  std::string trade;             // the cost of raising or lowering it
  KnobAdvice advice;
  std::vector<std::string> needs;      // "NCCL_GDRCOPY_ENABLE=1": without these it has no effect
  std::vector<std::string> conflicts;  // names of conflicting variables
  std::string successor;               // what to set instead: a variable, an option, or a procedure
  std::string note;                    // a pitfall, or a correction of common advice
  // Documented by the vendor; undocumented ones may be removed without notice.
  bool documented = false;
  bool exists = true;  // false: no library and no known plugin has ever read it
  // When a change takes effect: "process" (read once, a restart is needed) or "communicator".
  std::string takes_effect;

  const KnobReading& Of(Library library) const;  // NCCL or RCCL
  // Whether a plugin reads it, and neither NCCL nor RCCL.
  bool OnlyOfPlugin() const { return !reader.empty() && !nccl.Ever() && !rccl.Ever(); }
  // `values`, and the library's own at this version (0: the newest).
  std::vector<std::string> ValuesOf(Library library, int version) const;
};
// The valid values: "0 or 1", "1 to 128, or -1", "LOC, PIX, SYS", "text".
std::string AllowedText(const Knob& knob);

// The known variables, from the tables in src/knobs/*.toml, which are compiled in. Sorted by name.
// Immutable.
class Catalogue {
 public:
  // The compiled-in tables. Tests check them, so this cannot fail. (A table that cannot be parsed
  // would be named on standard error and left out.)
  static const Catalogue& BuiltIn();
  // Parses tables; `name` is for errors. Unknown content is an error with its line.
  static Result<Catalogue> Parse(const std::vector<std::pair<std::string, std::string>>& files);

  const std::vector<Knob>& knobs() const { return knobs_; }
  // nullptr if there is none of that name; case-sensitive.
  const Knob* Find(std::string_view name) const;
  // Variables that contain all of `words` in name, text, group or advice; case-insensitive.
  // "latency" and "throughput" also find variables with advice for small and for large messages.
  std::vector<const Knob*> Search(const std::vector<std::string>& words) const;
  // The nearest name among those that this library reads at this version (0: the newest); "" if
  // none is near.
  std::string Nearest(std::string_view name, Library library, int version) const;
  // The same among all names that any version of either library reads.
  std::string NearestOfAll(std::string_view name) const;
  // The same among the variables of one plugin.
  std::string NearestOfReader(std::string_view name, std::string_view reader) const;
  // The newest version in the tables.
  static int NewestKnown(Library library);
  // The newest version whose variables are all in the tables. Of later ones some are: such a
  // version may read a variable that the tables do not have.
  static int NewestComplete(Library library);

 private:
  std::vector<Knob> knobs_;
};

}  // namespace diapason::knobs
