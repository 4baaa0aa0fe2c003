// A comparison for programs: JSON, and JUnit's XML as CI systems read it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "compare/comparison.h"
#include "dataset/summary.h"

namespace diapason::compare {
namespace {

using nlohmann::ordered_json;

double Rounded(double value, double digits) {
  return std::isfinite(value) ? std::round(value * digits) / digits : 0;
}
double Share(double value) { return Rounded(value, 1e6); }

ordered_json CallJson(const dataset::Point& point) {
  ordered_json json{{"collective", point.collective},
                    {"bytes", point.bytes},
                    {"ranks", point.ranks},
                    {"nodes", point.nodes},
                    {"type", point.type},
                    {"reduce", point.reduce},
                    {"root", point.root},
                    {"in_place", point.in_place},
                    {"configuration", point.ConfigText()}};
  if (point.kind == dataset::Point::Kind::kIteration) json["iteration"] = point.workload;
  return json;
}

ordered_json ChangeJson(const Change& change) {
  ordered_json json{{"change", Share(change.share())}};
  if (change.has_interval()) {
    json["interval"] = {Share(change.low()), Share(change.high())};
  } else {
    json["interval"] = nullptr;
  }
  if (change.has_range) {
    json["range"] = {Share(change.range_low), Share(change.range_high)};
  } else {
    json["range"] = nullptr;
  }
  json["paired"] = change.paired;
  json["spread_assumed"] = change.assumed;
  json["old_launches"] = change.old_launches;
  json["new_launches"] = change.new_launches;
  json["old_samples"] = change.old_samples;
  json["new_samples"] = change.new_samples;
  return json;
}

ordered_json SideJson(const std::string& name, const std::vector<Launch>& launches) {
  ordered_json list = ordered_json::array();
  for (const Launch& launch : launches) {
    list.push_back({{"name", launch.name},
                    {"started", launch.started},
                    {"library", launch.machine.library},
                    {"library_version", launch.machine.library_version},
                    {"gpu", launch.machine.gpu},
                    {"driver", launch.machine.driver},
                    {"hosts", launch.machine.hosts},
                    {"simulated", launch.machine.simulated}});
  }
  return {{"name", name}, {"launches", list}};
}

ordered_json PointsJson(const std::vector<dataset::Point>& points) {
  ordered_json list = ordered_json::array();
  for (const dataset::Point& point : points) list.push_back(CallJson(point));
  return list;
}

// Attributes of XML 1.0: no control characters, not even as references.
std::string Attribute(const std::string& text) { return HtmlText(Printable(text)); }

}  // namespace

std::string ComparisonJson(const Comparison& comparison) {
  ordered_json calls = ordered_json::array();
  for (const CallComparison& one : comparison.calls) {
    ordered_json json = CallJson(one.point);
    json["old_us"] = Rounded(one.change.old_seconds * 1e6, 1e4);
    json["new_us"] = Rounded(one.change.new_seconds * 1e6, 1e4);
    json.update(ChangeJson(one.change));
    json["p"] = Share(one.p);
    json["verdict"] = VerdictName(one.verdict);
    json["fails"] = one.fails;
    json["why"] = one.why;
    json["ran_old"] = one.ran_before;
    json["ran_new"] = one.ran_after;
    calls.push_back(std::move(json));
  }
  ordered_json changed = ordered_json::array();
  for (const Difference& one : comparison.differences) {
    changed.push_back({{"what", one.what}, {"old", one.before}, {"new", one.after}});
  }
  ordered_json overall = nullptr;
  if (comparison.overall) {
    overall = ChangeJson(*comparison.overall);
    overall["calls"] = comparison.overall_calls;
  }
  const ordered_json document{
      {"old", SideJson(comparison.old_name, comparison.old_launches)},
      {"new", SideJson(comparison.new_name, comparison.new_launches)},
      {"verdict", VerdictName(comparison.Overall())},
      {"slower", comparison.Count(Verdict::kSlower)},
      {"faster", comparison.Count(Verdict::kFaster)},
      {"same", comparison.Count(Verdict::kSame)},
      {"cannot_tell", comparison.Count(Verdict::kCannotTell)},
      {"threshold", comparison.options.threshold},
      {"fail_on", comparison.options.fail_on ? ordered_json(*comparison.options.fail_on) : nullptr},
      {"failing", comparison.Failing()},
      {"geometric_mean_change", Share(comparison.geometric_mean)},
      {"common_calls", overall},
      {"changed", changed},
      {"calls", calls},
      {"only_old", PointsJson(comparison.only_old)},
      {"only_new", PointsJson(comparison.only_new)},
      {"notes", comparison.notes},
      {"method", MethodText(comparison)}};
  return PrintableJson(document.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

std::string ComparisonJunit(const Comparison& comparison) {
  const bool judged = comparison.options.fail_on.has_value();
  const auto fails = [&](const CallComparison& one) {
    return judged ? one.fails : one.verdict == Verdict::kSlower;
  };
  const size_t failures =
      static_cast<size_t>(std::count_if(comparison.calls.begin(), comparison.calls.end(), fails));
  const auto skips = [&](const CallComparison& one) {
    return one.verdict == Verdict::kCannotTell && !fails(one);
  };
  const size_t skipped =
      static_cast<size_t>(std::count_if(comparison.calls.begin(), comparison.calls.end(), skips));
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  text +=
      Format("<testsuite name=\"diapason compare\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
             comparison.calls.size(), failures, skipped);
  for (const CallComparison& one : comparison.calls) {
    const std::string said = Format("{:.2f} us -> {:.2f} us, {} {}", one.change.old_seconds * 1e6,
                                    one.change.new_seconds * 1e6, ShareText(one.change.share()),
                                    ChangeIntervalText(one.change));
    // The time of a test case is in seconds.
    text += Format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"",
                   Attribute(one.point.collective), Attribute(CallText(one.point)),
                   one.change.new_seconds);
    if (fails(one)) {
      text += Format(">\n    <failure message=\"slower: {}\"/>\n  </testcase>\n", Attribute(said));
    } else if (skips(one)) {
      text += Format(">\n    <skipped message=\"cannot tell: {}; {}\"/>\n  </testcase>\n",
                     Attribute(said), Attribute(one.why));
    } else {
      text += "/>\n";
    }
  }
  return text + "</testsuite>\n";
}

}  // namespace diapason::compare
