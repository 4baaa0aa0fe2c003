#include "knobs/values.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "base/units.h"

namespace diapason::knobs {
namespace {

// Since 2.30 switches have a parser of their own: 1, T, TRUE, 0, F, FALSE.
constexpr int kSwitchWords = 23003;
bool TakesSwitchWords(const Knob& knob, const CheckedFor& checked_for) {
  return checked_for.library == Library::kNccl && checked_for.version >= kSwitchWords &&
         (knob.name == "NCCL_SET_THREAD_NAME" || knob.name == "NCCL_WARN_ENABLE_DEBUG_INFO");
}

std::string Quoted(const std::string& text) {
  return "'" + (text.size() > 80 ? text.substr(0, 77) + "..." : text) + "'";
}

std::string DefaultText(const Knob& knob, const CheckedFor& checked_for) {
  const std::string text = knob.Of(checked_for.library).DefaultAt(checked_for.version);
  return text.empty() ? "its default" : "its default, " + text;
}

ValueVerdict Bad(Severity severity, std::string title, std::string action) {
  return {"env.bad-value", severity, std::move(title), std::move(action)};
}

bool InRange(const Knob& knob, int64_t value) {
  return (!knob.has_low || value >= knob.low) && (!knob.has_high || value <= knob.high);
}

bool IsSpecial(const Knob& knob, int64_t value) {
  return std::find(knob.special.begin(), knob.special.end(), value) != knob.special.end();
}

// "2" in the list "0", "1", "2".
bool IsListed(const Knob& knob, int64_t value) {
  return std::any_of(knob.values.begin(), knob.values.end(), [value](const std::string& one) {
    const NumberReading reading = ReadNumber(one);
    return reading.digits && reading.rest.empty() && reading.value == value;
  });
}

// "4M", "4 MiB": probably meant as bytes.
std::string MeantBytes(const std::string& value) {
  const Result<uint64_t> bytes = ParseBytes(Trim(value));
  return bytes.ok() ? Format("{}", bytes.value()) : "";
}

std::string MeantSwitch(const std::string& value) {
  const std::string lower = ToLower(Trim(value));
  for (const char* on : {"true", "yes", "on", "enable", "enabled", "t", "y"}) {
    if (lower == on) return "1";
  }
  for (const char* off : {"false", "no", "off", "disable", "disabled", "f", "n", "none"}) {
    if (lower == off) return "0";
  }
  return "";
}

std::vector<ValueVerdict> JudgeSignal(const Knob& knob, const NumberReading& reading) {
  const int64_t value = reading.value;
  if (value == -1) return {};
  if (value == SIGKILL || value == SIGSTOP) {
    return {Bad(Severity::kError,
                Format("{}={}: no process can catch {}, so the state is never dumped", knob.name,
                       value, value == SIGKILL ? "SIGKILL" : "SIGSTOP"),
                "Use 10 (SIGUSR1) or 12 (SIGUSR2)")};
  }
  if (value < 1 || value > SIGRTMAX) {
    return {Bad(Severity::kError,
                Format("{}={} is no signal, so the state is never dumped", knob.name, value),
                "Use 10 (SIGUSR1) or 12 (SIGUSR2)")};
  }
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGCHLD}) {
    if (value == fatal) {
      return {
          Bad(Severity::kWarning,
              Format("{}={} takes {} away from the program: it is dumped, and does nothing else",
                     knob.name, fatal, strsignal(fatal)),
              "Use 10 (SIGUSR1) or 12 (SIGUSR2)")};
    }
  }
  return {};
}

// The number of threads must be a multiple of the warp size: 32 for NCCL; AMD's wavefronts have 64,
// or 32 on Radeon cards.
std::vector<ValueVerdict> JudgeThreads(const Knob& knob, int64_t value,
                                       const CheckedFor& checked_for) {
  if (knob.name != "NCCL_NTHREADS" && knob.name != "NCCL_LL128_NTHREADS") return {};
  const bool rccl = checked_for.library == Library::kRccl && !checked_for.either;
  // Zero and negative values mean the default.
  if (value <= 0 || value % (rccl ? 64 : 32) == 0) return {};
  const bool radeon = value % 32 == 0;
  const std::string multiple = radeon ? "64, which a wavefront has but on Radeon cards" : "32";
  return {Bad(radeon ? Severity::kNote : Severity::kWarning,
              Format("{}={} is no multiple of {}; the library takes the most it can instead",
                     knob.name, value, multiple),
              std::string("Use a multiple of ") + (rccl ? "64" : "32") + ", or unset it")};
}

// The maximum number of channels of a communicator; the libraries clamp larger values.
std::vector<ValueVerdict> JudgeChannels(const Knob& knob, int64_t value,
                                        const CheckedFor& checked_for) {
  constexpr int kDoubled = 22501;
  static const char* const kBounds[] = {"NCCL_MIN_CTAS",      "NCCL_MAX_CTAS",
                                        "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
                                        "NCCL_MIN_NRINGS",    "NCCL_MAX_NRINGS"};
  if (std::find(std::begin(kBounds), std::end(kBounds), knob.name) == std::end(kBounds)) return {};
  const bool old = checked_for.version != 0 && checked_for.version < kDoubled;
  const bool rccl = checked_for.library == Library::kRccl || checked_for.either;
  const int most = rccl ? 128 : old ? 32 : 64;
  if (value <= most) return {};
  return {Bad(Severity::kWarning,
              Format("{}={} is out of its range: {} has at most {} channels, and takes {}",
                     knob.name, value, std::string(LibraryTitle(checked_for.library)), most, most),
              Format("Use {} or less, or unset it", most))};
}

std::vector<ValueVerdict> JudgeRange(const Knob& knob, int64_t value,
                                     const CheckedFor& checked_for) {
  if (knob.name == "NCCL_PROXY_APPEND_BATCH_SIZE" && value == -1) {
    return {Bad(
        Severity::kError,
        Format("{}={}: the proxy never takes up an operation, and the job hangs", knob.name, value),
        "Use 1 or more, or unset it for " + DefaultText(knob, checked_for))};
  }
  if (IsSpecial(knob, value)) return {};
  for (const auto& judge : {JudgeThreads, JudgeChannels}) {
    std::vector<ValueVerdict> verdicts = judge(knob, value, checked_for);
    if (!verdicts.empty()) return verdicts;
  }
  const std::string number = Format("{}", value);
  if (knob.type == KnobType::kNumber && !knob.values.empty() && !knob.has_low && !knob.has_high) {
    if (IsListed(knob, value)) return {};
    return {Bad(Severity::kError, knob.name + "=" + number + " is none of the values it has",
                "Use " + AllowedText(knob))};
  }
  if (knob.type == KnobType::kNumber && !InRange(knob, value) && !IsListed(knob, value)) {
    return {
        Bad(Severity::kWarning,
            knob.name + "=" + number + " is out of its range (" + AllowedText(knob) + ")",
            "Use " + AllowedText(knob) + ", or unset it for " + DefaultText(knob, checked_for))};
  }
  return {};
}

// A factor that is a whole number of at least 1 up to 2.30, and any positive number since.
bool TakesFraction(const Knob& knob, const std::string& value, const CheckedFor& checked_for) {
  constexpr int kFirst = 23102;
  if (knob.name != "NCCL_RAS_TIMEOUT_FACTOR" || checked_for.version < kFirst) return false;
  char* end = nullptr;
  return std::strtod(value.c_str(), &end) > 0 && end != value.c_str() && *end == '\0';
}

std::vector<ValueVerdict> JudgeNumber(const Knob& knob, const std::string& value,
                                      const CheckedFor& checked_for) {
  if (TakesFraction(knob, value, checked_for)) return {};
  const NumberReading reading = ReadNumber(value);
  const std::string meant_switch = MeantSwitch(value);
  if (TakesSwitchWords(knob, checked_for) && !meant_switch.empty()) return {};
  if (!reading.digits) {
    const std::string action = knob.type == KnobType::kSwitch && !meant_switch.empty()
                                   ? "Write " + knob.name + "=" + meant_switch
                                   : "Write " + AllowedText(knob);
    return {Bad(Severity::kError,
                knob.name + "=" + Quoted(value) + " is no number; the library reads it as 0",
                action)};
  }
  if (reading.overflow) {
    return {Bad(Severity::kError,
                knob.name + "=" + Quoted(value) +
                    " is larger than 64 bits can hold; the library uses " +
                    DefaultText(knob, checked_for),
                "Write " + AllowedText(knob))};
  }
  const std::string as_read = Format("{}", reading.value);
  if (!reading.rest.empty()) {
    const std::string bytes = MeantBytes(value);
    if (!bytes.empty() && bytes != as_read) {
      return {Bad(
          Severity::kError,
          knob.name + "=" + Quoted(value) + " is read as " + as_read + ": units are not understood",
          "Write " + knob.name + "=" + bytes)};
    }
    std::vector<ValueVerdict> verdicts = JudgeRange(knob, reading.value, checked_for);
    verdicts.push_back(Bad(reading.octal ? Severity::kError : Severity::kWarning,
                           knob.name + "=" + Quoted(value) + " is read as " + as_read + "; " +
                               Quoted(reading.rest) + " is not looked at",
                           "Write " + knob.name + "=" + as_read + " if that is meant"));
    return verdicts;
  }
  if (knob.name == "NCCL_PROXY_DUMP_SIGNAL") return JudgeSignal(knob, reading);
  std::vector<ValueVerdict> verdicts = JudgeRange(knob, reading.value, checked_for);
  if (reading.octal && reading.value > 7) {
    verdicts.push_back(
        Bad(Severity::kWarning,
            knob.name + "=" + value + " is read as " + as_read + ": a zero in front makes it octal",
            "Write the number without the zero"));
  }
  return verdicts;
}

bool IsLevel(const Knob& knob) {
  return knob.name == "NCCL_P2P_LEVEL" || knob.name == "NCCL_NET_GDR_LEVEL";
}

// Distances as numbers, from before they had names.
std::vector<ValueVerdict> JudgeLevelDigit(const Knob& knob, const std::string& value) {
  static const char* const kNames[] = {"LOC", "PIX", "PXB", "PHB", "SYS"};
  const int64_t digit = std::min<int64_t>(ReadNumber(value).value, 4);
  const std::string name = kNames[digit < 0 ? 4 : digit];
  return {{"env.deprecated", Severity::kNote,
           knob.name + "=" + value + " is the old way to write " + name,
           "Write " + knob.name + "=" + name + ", which says what it means"}};
}

// RCCL calls the links between GPUs XGMI; digits are from before there were words.
std::vector<std::string> WordsOf(const Knob& knob, const CheckedFor& checked_for) {
  if (!IsLevel(knob)) return knob.ValuesOf(checked_for.library, checked_for.version);
  std::vector<std::string> words;
  for (const std::string& word : knob.values) {
    if (ReadNumber(word).digits || word == "XGMI") continue;
    const bool link = word == "NVL" && checked_for.library == Library::kRccl;
    words.push_back(link ? "XGMI" : word);
  }
  return words;
}

std::vector<ValueVerdict> JudgeWord(const Knob& knob, const std::string& value,
                                    const CheckedFor& checked_for) {
  const bool digit = !value.empty() && value[0] >= '0' && value[0] <= '9';
  if (IsLevel(knob) && digit && checked_for.file) return {};  // it works
  if (IsLevel(knob) && digit) return JudgeLevelDigit(knob, value);
  const std::string trimmed(Trim(value));
  const std::vector<std::string> words = WordsOf(knob, checked_for);
  for (const std::string& word : words) {
    if (value == word || (knob.fold_case && ToLower(trimmed) == ToLower(word))) return {};
  }
  const std::string after = knob.OnlyOfPlugin() ? ""
                                                : "; the library does not say so and uses " +
                                                      DefaultText(knob, checked_for);
  for (const std::string& word : words) {
    if (ToLower(trimmed) == ToLower(word)) {
      return {
          Bad(Severity::kError,
              knob.name + "=" + Quoted(value) + " is not '" + word + "': case counts here" + after,
              "Write " + knob.name + "=" + word)};
    }
  }
  const std::string closest = ClosestName(trimmed, words);
  std::string title = knob.name + "=" + Quoted(value) + " is none of its words" + after;
  if (knob.name == "NCCL_DEBUG") {
    title = "NCCL_DEBUG=" + Quoted(value) + " is no level; nothing at all is logged";
  } else if (knob.name == "NCCL_LAUNCH_MODE") {
    title = "NCCL_LAUNCH_MODE=" + Quoted(value) + " is read as PARALLEL, as is all but GROUP";
  }
  return {Bad(
      Severity::kError, title,
      "Use " + Join(words, ", ") + (closest.empty() ? "" : "; " + closest + " is the nearest"))};
}

std::vector<ValueVerdict> JudgeDebugFile(const Knob& knob, const std::string& value) {
  bool host = false;
  bool process = false;
  for (size_t i = 0; i + 1 < value.size(); ++i) {
    if (value[i] != '%') continue;
    host = host || value[i + 1] == 'h';
    process = process || value[i + 1] == 'p';
    ++i;
  }
  std::vector<ValueVerdict> verdicts;
  if (value.starts_with("~")) {
    verdicts.push_back(Bad(Severity::kError,
                           knob.name + "=" + Quoted(value) +
                               ": '~' is not expanded, so the file cannot be made and the log goes "
                               "to standard output",
                           "Write the whole path"));
  }
  if (!process && !value.starts_with("/dev/")) {
    verdicts.push_back(Bad(Severity::kWarning,
                           knob.name + "=" + Quoted(value) +
                               " has no %p: every process of a host truncates and writes the same "
                               "file",
                           "Write " + value + ".%h.%p"));
  } else if (!host && !value.starts_with("/dev/") && !value.starts_with("/tmp/")) {
    verdicts.push_back(
        Bad(Severity::kNote,
            knob.name + "=" + Quoted(value) +
                " has no %h: on a shared file system processes of two hosts with one "
                "number write the same file",
            "Add %h"));
  }
  return verdicts;
}

}  // namespace

NumberReading ReadNumber(const std::string& text) {
  NumberReading reading;
  const char* begin = text.c_str();
  char* end = nullptr;
  errno = 0;
  reading.value = std::strtoll(begin, &end, 0);
  reading.overflow = errno == ERANGE;
  errno = 0;
  reading.digits = end != begin;
  reading.rest = std::string(Trim(end));
  const std::string_view trimmed = Trim(text);
  reading.octal = trimmed.size() > 1 && trimmed[0] == '0' && trimmed[1] >= '0' && trimmed[1] <= '9';
  return reading;
}

std::vector<ValueVerdict> JudgeValue(const Knob& knob, const std::string& value,
                                     const CheckedFor& checked_for) {
  if (value.empty()) {
    if (knob.name == "NCCL_ALGO" || knob.name == "NCCL_PROTO") {
      return JudgeEmptySelection(knob, checked_for);
    }
    if (knob.type == KnobType::kText || knob.type == KnobType::kList) return {};
    return {
        Bad(Severity::kNote,
            knob.name + " is set to nothing; the library uses " + DefaultText(knob, checked_for),
            "Unset it")};
  }
  if (knob.name == "NCCL_ALGO" || knob.name == "NCCL_PROTO") {
    return JudgeSelection(knob, value, checked_for);
  }
  if (knob.name == "NCCL_DEBUG_FILE") return JudgeDebugFile(knob, value);
  switch (knob.type) {
    case KnobType::kNumber:
    case KnobType::kSwitch:
      return JudgeNumber(knob, value, checked_for);
    case KnobType::kWord:
      return JudgeWord(knob, value, checked_for);
    case KnobType::kList:
    case KnobType::kText:
      return JudgeList(knob, value, checked_for);
  }
  return {};
}

}  // namespace diapason::knobs
