#include <algorithm>
#include <functional>

#include "base/text.h"
#include "knobs/catalogue.h"

namespace diapason::knobs {
namespace {

// A name without its family ("NCCL_", "RCCL_", "TORCH_NCCL_"), as words.
std::vector<std::string> Words(std::string_view name) {
  std::string lower = ToLower(name);
  for (char& c : lower) c = c == '-' ? '_' : c;
  std::vector<std::string> words;
  for (const std::string_view word : Split(lower, '_')) {
    if (!word.empty()) words.emplace_back(word);
  }
  if (words.size() > 1) words.erase(words.begin());
  return words;
}

bool Holds(const std::vector<std::string>& words, const std::vector<std::string>& of) {
  return std::all_of(of.begin(), of.end(), [&words](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

// The distance of a name from an existing one; kFar if they are not similar. A third of the
// letters, as elsewhere, would be too much here: the names are long and alike.
constexpr size_t kFar = 1000;
size_t Farness(const std::vector<std::string>& meant, const std::vector<std::string>& other) {
  const std::string a = Join(meant, "");
  const std::string b = Join(other, "");
  if (a.size() > 64 || a.empty()) return kFar;
  const size_t distance = EditDistance(a, b);
  // With two letters of four changed it is another word.
  if (distance <= std::max<size_t>(1, a.size() / 5) && distance * 2 < b.size()) return distance;
  // "ALGORITHM" and "IB_QPS" are long and short forms of names.
  const bool starts = a.size() >= 4 && b.size() >= 4 && (a.starts_with(b) || b.starts_with(a));
  if (starts && meant.size() <= 2) return 10 + distance;
  // "DISABLE_P2P", "PROXY_TRACE": the same words, or nearly all of them.
  if (meant.size() >= 2 && other.size() <= meant.size() + 1 && Holds(other, meant)) {
    return 10 + distance;
  }
  return kFar;
}

std::string NearestAmong(std::string_view name, const std::vector<Knob>& knobs,
                         const std::function<bool(const Knob&)>& counts) {
  const std::vector<std::string> meant = Words(name);
  const std::string family = ToLower(name.substr(0, name.find('_')));
  std::string best;
  size_t least = kFar;
  for (const Knob& knob : knobs) {
    if (!counts(knob)) continue;
    size_t farness = Farness(meant, Words(knob.name));
    if (farness == kFar) continue;
    // Doubled, so that the right family wins a tie.
    farness = farness * 2 + (ToLower(knob.name).starts_with(family + "_") ? 0 : 1);
    if (farness < least) {
      least = farness;
      best = knob.name;
    }
  }
  return best;
}

}  // namespace

std::string Catalogue::Nearest(std::string_view name, Library library, int version) const {
  return NearestAmong(name, knobs_, [library, version](const Knob& knob) {
    return knob.Of(library).Reads(version);
  });
}

std::string Catalogue::NearestOfReader(std::string_view name, std::string_view reader) const {
  return NearestAmong(name, knobs_, [reader](const Knob& knob) { return knob.reader == reader; });
}

std::string Catalogue::NearestOfAll(std::string_view name) const {
  return NearestAmong(name, knobs_, [](const Knob& knob) { return knob.exists; });
}

}  // namespace diapason::knobs
