#include "measure/targets.h"

#include <cmath>

#include "base/text.h"
#include "base/toml_section.h"
#include "base/units.h"

namespace diapason::measure {
namespace {

using tomlfile::Reader;
using tomlfile::Section;
using TargetGoal = Target::Goal;

// "About" a millisecond is met by a quarter more.
constexpr double kAbout = 1.25;

// "90GB/s"
Result<double> Bandwidth(const std::string& text) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, end);
  const std::string unit(Trim(end == std::string::npos ? "" : text.substr(end)));
  const double factor = unit == "GB/s"     ? 1e9
                        : unit == "MB/s"   ? 1e6
                        : unit == "Gbit/s" ? 0.125e9
                                           : 0;
  char* rest = nullptr;
  const double value = std::strtod(number.c_str(), &rest);
  if (number.empty() || *rest != '\0' || factor == 0 || !(value > 0) || !std::isfinite(value)) {
    return Invalid("'" + text + "' is no bandwidth such as 90GB/s, 500MB/s or 400Gbit/s");
  }
  return value * factor;
}

constexpr size_t kLongestName = 200;

void ReadGoal(Reader* reader, Section* section, Target* target) {
  int goals = 0;
  const auto found = [&](const char* key, TargetGoal goal) {
    if (!section->Has(key)) return false;
    target->goal = goal;
    ++goals;
    return true;
  };
  if (found("at_most", TargetGoal::kTime)) section->Parsed("at_most", ParseSeconds, &target->value);
  if (found("about", TargetGoal::kTime)) {
    section->Parsed("about", ParseSeconds, &target->value);
    target->about = true;
  }
  if (found("busbw_at_least", TargetGoal::kBusBandwidth)) {
    section->Parsed("busbw_at_least", Bandwidth, &target->value);
  }
  const std::pair<const char*, TargetGoal> shares[] = {
      {"link_share_at_least", TargetGoal::kLinkShare},
      {"scaling_at_least", TargetGoal::kScaling},
      {"exposed_at_most", TargetGoal::kExposed}};
  for (const auto& [key, goal] : shares) {
    if (found(key, goal)) section->Number(key, 0.0001, 10, &target->value);
  }
  if (goals == 1) return;
  reader->Fail(section->source(),
               goals == 0 ? "this target has no goal; there are at_most, about, busbw_at_least, "
                            "link_share_at_least, scaling_at_least and exposed_at_most"
                          : "this target has more than one goal");
}

Target ReadTarget(Reader* reader, const toml::table& table) {
  Target target;
  Section section(reader, table, "[[target]]");
  section.Text("name", kLongestName, &target.name);
  ReadGoal(reader, &section, &target);
  if (target.goal == TargetGoal::kExposed) {
    section.Text("iteration", kLongestName, &target.preset);
    section.Require({"iteration"});
  } else {
    section.Parsed("collective", ParseMeasured, &target.operation);
    section.Bytes("bytes", 1, &target.bytes);
    section.Text("algorithm", kLongestName, &target.algorithm);
    section.Require({"bytes"});
    if (target.goal == TargetGoal::kScaling) {
      // Compared with two, so more than two.
      section.Integer("ranks", 3, 65536, &target.ranks);
      section.Require({"ranks"});
    }
  }
  section.Finish();
  return target;
}

std::string TimeText(double seconds) {
  if (seconds < 1e-3) return Format("{:.3g} us", seconds * 1e6);
  return seconds < 1 ? Format("{:.3g} ms", seconds * 1e3) : Format("{:.3g} s", seconds);
}

}  // namespace

Result<std::vector<Target>> ParseTargets(const std::string& text, const std::string& name) {
  Reader reader(name);
  std::vector<Target> targets;
  try {
    const toml::table parsed = toml::parse(text);
    Section root(&reader, parsed, "a targets file");
    for (const toml::table* table : root.Tables("target")) {
      targets.push_back(ReadTarget(&reader, *table));
    }
    root.Require({"target"});
    root.Finish();
  } catch (const toml::parse_error& error) {
    reader.Fail(error.source(), std::string(error.description()));
  } catch (const tomlfile::DamagedToml&) {
    return Invalid(name + ": this is no TOML");
  }
  if (reader.failed()) return reader.status();
  return targets;
}

std::string GoalText(const Target& target) {
  switch (target.goal) {
    case TargetGoal::kTime:
      return (target.about ? "about " : "at most ") + TimeText(target.value);
    case TargetGoal::kBusBandwidth:
    case TargetGoal::kLinkShare:
    case TargetGoal::kScaling:
      return "at least " + ValueText(target, target.value);
    case TargetGoal::kExposed:
      break;
  }
  return "at most " + ValueText(target, target.value);
}

std::string ValueText(const Target& target, double value) {
  switch (target.goal) {
    case TargetGoal::kTime:
      return TimeText(value);
    case TargetGoal::kBusBandwidth:
      return Format("{:.3g} GB/s", value * 1e-9);
    case TargetGoal::kLinkShare:
      return Format("{:.3g} % of the link", value * 100);
    case TargetGoal::kScaling:
      return Format("{:.3g} % of two ranks", value * 100);
    case TargetGoal::kExposed:
      break;
  }
  return Format("{:.3g} % of the compute", value * 100);
}

bool Meets(const Target& target, double value) {
  switch (target.goal) {
    case TargetGoal::kTime:
      return value <= target.value * (target.about ? kAbout : 1);
    case TargetGoal::kExposed:
      return value <= target.value;
    default:
      return value >= target.value;
  }
}

}  // namespace diapason::measure
