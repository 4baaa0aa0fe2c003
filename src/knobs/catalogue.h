#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "domain/vocabulary.h"

namespace diapason::knobs {

// How a library reads the text behind a variable.
enum class KnobType : uint8_t {
  kNumber,  // strtoll with base 0: hex and octal too, trailing text ignored, no K or M
  kSwitch,  // a number of which only zero or not zero counts
  kWord,    // one of `values`, in exactly this case unless said otherwise
  kList,    // several words, separated by commas
  kText,    // free: a path, an interface, a host
};
std::string_view KnobTypeName(KnobType type);

// A stretch of versions; both ends belong to it. `last` 0: still read by the newest one known.
struct VersionSpan {
  int first = 0;
  int last = 0;
  bool Holds(int version) const { return version >= first && (last == 0 || version <= last); }
};
// "2.14.3 to 2.30.4", "since 2.4.2", several separated by commas; "never" for none.
std::string SpansText(const std::vector<VersionSpan>& spans);

// One library's reading of a variable.
struct KnobReading {
  std::vector<VersionSpan> spans;  // empty: this library never reads it
  std::string default_text;        // what holds when it is not set; "" for "nothing"
  // Where the default was another one: from this version on it was that, until the next entry.
  std::vector<std::pair<int, std::string>> earlier_defaults;
  bool Reads(int version) const;  // 0: the newest known
  std::string DefaultAt(int version) const;
  bool Ever() const { return !spans.empty(); }
};

// Advice for a kind of workload; "" where there is none.
struct KnobAdvice {
  std::string small;  // small messages
  std::string large;
  std::string many;  // many operations at a time
  std::string few;
};

// An environment variable that NCCL or RCCL reads, or that people set although neither does.
struct Knob {
  std::string name;
  KnobType type = KnobType::kText;
  KnobReading nccl;
  KnobReading rccl;
  std::vector<std::string> values;  // the words; for numbers with meanings "0", "1", "2"
  bool fold_case = false;           // words are read in any case
  bool has_low = false;
  bool has_high = false;
  int64_t low = 0;
  int64_t high = 0;
  std::vector<int64_t> special;  // numbers outside the range that mean something: -1, -2
  std::string group;             // "proxy", "network", "infiniband", "shared memory", ...
  std::string text;              // what it does
  std::string trade;             // what more or less of it costs
  KnobAdvice advice;
  std::vector<std::string> needs;      // "NCCL_GDRCOPY_ENABLE=1": without these it does nothing
  std::vector<std::string> conflicts;  // names that fight with it
  std::string successor;               // what to set instead; names a variable, an option, or how
  std::string note;                    // a trap, a correction of what is often said
  bool documented = false;  // by the library's makers; the others may vanish without notice
  bool exists = true;       // false: no library has ever read it
  // When a change is seen: "process" (read once, a restart is needed) or "communicator".
  std::string takes_effect;

  const KnobReading& Of(Library library) const;  // NCCL or RCCL
};
// What one may write behind it: "0 or 1", "1 to 128, or -1", "LOC, PIX, SYS", "text".
std::string AllowedText(const Knob& knob);

// The variables that are known, from the tables in src/knobs/*.toml which are part of the
// program. Sorted by name.
class Catalogue {
 public:
  // The tables that were built in. They are checked when the project is tested: this cannot fail.
  // (A table that could not be read all the same would be named on standard error and left out.)
  static const Catalogue& BuiltIn();
  // Reads tables; `name` is for errors. What is not understood is an error with its line.
  static Result<Catalogue> Parse(const std::vector<std::pair<std::string, std::string>>& files);

  const std::vector<Knob>& knobs() const { return knobs_; }
  // nullptr where there is none of that name; case counts.
  const Knob* Find(std::string_view name) const;
  // All words of `words` somewhere in name, text, group, advice; any case. "latency" and
  // "throughput" also find what has advice for small and for large messages.
  std::vector<const Knob*> Search(const std::vector<std::string>& words) const;
  // The name that was most likely meant, among those that this library reads at this version (0:
  // the newest); "" where none is near.
  std::string Nearest(std::string_view name, Library library, int version) const;
  // The same among all names that any version of either library reads.
  std::string NearestOfAll(std::string_view name) const;
  // The newest version the tables know of.
  static int NewestKnown(Library library);

 private:
  std::vector<Knob> knobs_;
};

}  // namespace diapason::knobs
