#include "job_tune/page.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/secrets.h"
#include "base/text.h"
#include "base/units.h"
#include "base/version.h"
#include "domain/library_version.h"
#include "domain/schedule.h"
#include "journal/record.h"

namespace diapason::job_tune {
namespace {

using job_profile::CallClass;
using job_profile::JobProfile;
using job_profile::Milliseconds;

// What a class of calls is called, alike in both settings.
std::string LabelOf(const JobProfile& profile, const CallClass& one) {
  const std::string name =
      one.collective == journal::kNamelessCollective
          ? "a collective without a name here"
          : std::string(CollectiveName(static_cast<Collective>(one.collective)));
  // Two settings may have seen slightly different sizes: the band is the same.
  std::string text = name + " up to " + AboutBytes(BandLast(one.band));
  if (profile.roles.size() > 1) text += ", " + profile.roles[one.role].Text();
  return text;
}

// The page's list of classes, those with most exposed time in any setting first.
class Classes {
 public:
  explicit Classes(const std::vector<const JobProfile*>& profiles) {
    std::map<std::string, double> most;
    for (const JobProfile* profile : profiles) {
      std::map<std::string, double> exposed;
      for (const CallClass& one : profile->classes) {
        if (one.times.total > 0) exposed[LabelOf(*profile, one)] += one.times.exposed;
      }
      for (const auto& [label, seconds] : exposed) most[label] = std::max(most[label], seconds);
    }
    for (const auto& [label, seconds] : most) labels_.push_back(label);
    std::stable_sort(labels_.begin(), labels_.end(),
                     [&](const auto& a, const auto& b) { return most[a] > most[b]; });
  }
  size_t IndexOf(const std::string& label) const {
    return static_cast<size_t>(std::find(labels_.begin(), labels_.end(), label) - labels_.begin());
  }
  const std::vector<std::string>& labels() const { return labels_; }

 private:
  std::vector<std::string> labels_;
};

report::JobSetting SettingOf(const JobProfile& profile, const std::string& name,
                             const Classes& classes) {
  report::JobSetting setting;
  setting.name = name;
  setting.seconds = profile.iteration;
  setting.title = Format("{}: {}", name, Milliseconds(profile.iteration));
  setting.known = profile.times.total > 0;
  if (!setting.known) return setting;
  setting.hidden = std::max(0.0, profile.times.Hidden());
  setting.compute = std::max(0.0, profile.iteration - profile.times.total);
  std::vector<double> exposed;
  for (const CallClass& one : profile.classes) {
    if (one.times.total <= 0) continue;
    const size_t at = classes.IndexOf(LabelOf(profile, one));
    exposed.resize(std::max(exposed.size(), at + 1));
    exposed[at] += one.times.exposed;
  }
  for (size_t at = 0; at < exposed.size(); ++at) {
    if (exposed[at] > 0) setting.exposed.emplace_back(at, exposed[at]);
  }
  return setting;
}

// The times of one class in a profile: {total, exposed}.
std::pair<double, double> TimesOf(const JobProfile& profile, const std::string& label) {
  std::pair<double, double> times;
  for (const CallClass& one : profile.classes) {
    if (LabelOf(profile, one) != label) continue;
    times.first += one.times.total;
    times.second += one.times.exposed;
  }
  return times;
}

void AddRows(const std::vector<const JobProfile*>& profiles, const Classes& classes,
             report::JobPage* page) {
  const auto row = [&](const std::string& name, bool bold, const auto& value) {
    report::JobPartRow added{name, bold, {}};
    for (const JobProfile* one : profiles) {
      added.seconds.push_back(one->times.total > 0 ? std::max(0.0, value(*one)) : -1);
    }
    page->rows.push_back(std::move(added));
  };
  report::JobPartRow whole{"one iteration", true, {}};
  for (const JobProfile* one : profiles) whole.seconds.push_back(one->iteration);
  page->rows.push_back(std::move(whole));
  row("compute and the rest, no collective running", false,
      [](const JobProfile& one) { return one.iteration - one.times.total; });
  row("communication, hidden", true, [](const JobProfile& one) { return one.times.Hidden(); });
  row("communication, exposed", true, [](const JobProfile& one) { return one.times.exposed; });
  for (const std::string& label : classes.labels()) {
    row("exposed: " + label, false,
        [&](const JobProfile& one) { return TimesOf(one, label).second; });
    row("hidden: " + label, false, [&](const JobProfile& one) {
      const auto [total, exposed] = TimesOf(one, label);
      return total - exposed;
    });
  }
  std::erase_if(page->rows, [](const report::JobPartRow& one) {
    return !one.bold && std::all_of(one.seconds.begin(), one.seconds.end(),
                                    [](double seconds) { return seconds == 0; });
  });
}

void AddPicture(const JobTuneResult& result, report::JobPage* page) {
  const bool both = result.by_default.iteration > 0 && result.tuned.iteration > 0;
  std::vector<const JobProfile*> profiles;
  if (both) {
    profiles = {&result.by_default, &result.tuned};
  } else if (result.look.iteration > 0) {
    profiles = {&result.look};
  }
  if (profiles.empty()) return;
  const Classes classes(profiles);
  if (both) {
    page->settings.push_back(SettingOf(result.by_default, "library default", classes));
    page->settings.push_back(SettingOf(result.tuned, "tuned", classes));
    report::JobSetting& tuned = page->settings.back();
    if (result.gain.gain > 0) {
      tuned.low = result.by_default.iteration / result.gain.high;
      tuned.high = result.by_default.iteration / result.gain.low;
      tuned.title += Format(", {:.2f} x as fast [{:.2f}, {:.2f}]", result.gain.gain,
                            result.gain.low, result.gain.high);
    }
    page->bars_note =
        result.gain.by_pairs
            ? Format(
                  "Of launch {} with the default and launch {} with the policy. The bar below the "
                  "second one "
                  "is where it ends by the 95 % interval of the gain over all pairs of launches.",
                  result.gain.default_launch, result.gain.launch)
            : Format(
                  "Of launch {}, in which the default and the policy took turns. The bar below the "
                  "second "
                  "one "
                  "is where it ends by the 95 % interval of the gain over all launches.",
                  result.gain.launch);
  } else {
    page->settings.push_back(SettingOf(result.look, "library default", classes));
    page->bars_note =
        "Of the first launch, with the library's own choices: there is no tuned setting to compare "
        "it with.";
  }
  page->classes = classes.labels();
  AddRows(profiles, classes, page);
  page->method =
      profiles[0]->times.total > 0
          ? "Exposed time, for which the following work waits, is an estimate from the "
            "kernels of the collectives alone; the rest of their time is hidden. Compute "
            "is what is left of the iteration while no collective runs, idle time "
            "included."
          : "No call has a GPU time, so that it is not known where the iteration goes.";
}

report::JobPageContext ContextOf(const JobTuneResult& result, const TunedContext& one) {
  const Library library = one.context.library;
  const Collective collective = one.context.collective;
  report::JobPageContext context;
  context.label = one.context.Text();
  const std::string sizes =
      one.least_bytes == one.most_bytes
          ? AboutBytes(one.most_bytes)
          : Format("{} to {}", AboutBytes(one.least_bytes), AboutBytes(one.most_bytes));
  context.facts =
      one.unseen ? Format("{}; {:.4g} calls in graphs, whose replays the library does not report",
                          sizes, one.calls_per_iteration)
      : one.by_launches
          ? Format("{}; {:.4g} calls in an iteration, in graphs", sizes, one.calls_per_iteration)
          : Format("{}; {:.4g} calls and {} of collective time in an iteration", sizes,
                   one.calls_per_iteration, Milliseconds(one.seconds));
  context.by_launches = one.by_launches;
  context.kept = result.verdict == Verdict::kFaster && !one.chosen.IsDefault();
  context.outcome = !one.untried.empty()     ? "not tried: " + one.untried
                    : one.chosen.IsDefault() ? "nothing that was tried was faster"
                                             : ConfigText(library, collective, one.chosen);
  if (!context.kept && !one.chosen.IsDefault()) {
    context.outcome += " was the best of the search, and is not in the policy";
  }
  for (const TriedConfig& tried : one.tried) {
    context.tried.push_back({ConfigText(library, collective, tried.config),
                             {tried.gain, tried.low, tried.high},
                             tried.blocks,
                             !one.chosen.IsDefault() && tried.config == one.chosen});
  }
  return context;
}

// For a heading.
std::string Shortened(const std::string& text) {
  constexpr size_t kMost = 56;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

void AddFacts(const JobTuneResult& result, report::JobPage* page) {
  page->facts.emplace_back("Command", MaskSecretsIn(result.command));
  std::vector<std::string> libraries;
  for (const job_profile::Role& role : result.look.roles) {
    const std::string text =
        Format("{} {}", std::string(LibraryTitle(role.library)),
               role.library_version == 0 ? "of unknown version"
                                         : LibraryVersionText(role.library_version));
    if (std::find(libraries.begin(), libraries.end(), text) == libraries.end()) {
      libraries.push_back(text);
    }
  }
  if (!libraries.empty()) page->facts.emplace_back("Library", Join(libraries, ", "));
  for (const job_profile::Role& role : result.look.roles) {
    if (page->facts.size() > 8) break;
    page->facts.emplace_back("Communicator", role.Text());
  }
  if (result.look.iteration > 0) {
    page->facts.emplace_back("At first", result.look.Headline());
  }
  page->facts.emplace_back("Policy", result.policy.rules.empty()
                                         ? "none: nothing was confirmed"
                                         : Count(result.policy.rules.size(), "row"));
  page->facts.emplace_back("Took", Format("{:.0f} s", result.seconds));
}

}  // namespace

report::JobPage PageOf(const JobTuneResult& result, double now) {
  report::JobPage page;
  page.title = "Tuned job: " + Shortened(MaskSecretsIn(result.command));
  page.version = kVersion;
  page.made = now;
  page.verdict = VerdictName(result.verdict);
  page.headline = result.Headline() + ".";
  page.headline[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(page.headline[0])));
  AddPicture(result, &page);
  const PooledGain& gain = result.gain;
  page.gain = {gain.gain, gain.low, gain.high};
  page.gain_launches = gain.launches;
  page.gain_changes = gain.changes;
  page.by_pairs = gain.by_pairs;
  page.unit = result.whole_launches ? "launch" : "iteration";
  page.default_seconds = gain.default_seconds;
  page.tuned_seconds = gain.tuned_seconds;
  if (gain.gain > 0) {
    const char* const one = gain.by_pairs ? "pair of launches" : "launch";
    const char* const all = gain.by_pairs ? "Pairs" : "Launches";
    page.next = Format("One further {} like these would find {:.3f} to {:.3f} x (95 %). ", one,
                       gain.next_low, gain.next_high);
    page.next += gain.launches == 1
                     ? Format("That {}s differ by {:.0f} % is assumed: there is only one.", one,
                              100 * gain.spread)
                     : Format("{} differ by {:.1f} %{}.", all, 100 * gain.spread,
                              gain.by_pairs ? "" : " beyond what their turns explain");
  }
  for (const VerifyingLaunch& one : result.verified) {
    const job_profile::TurnComparison& compared = one.compared;
    const bool decided = compared.Decided();
    page.verified.push_back(
        {one.launch,
         decided ? report::JobGain{compared.gain, compared.low, compared.high} : report::JobGain{},
         compared.log_gains.size(), compared.default_iterations + compared.policy_iterations,
         compared.default_seconds, compared.policy_seconds,
         decided ? compared.Verdict() : compared.trouble});
  }
  for (const VerifyingPair& one : result.pairs) {
    const double value = one.Decided() ? one.default_seconds / one.policy_seconds : 0;
    page.verified.push_back({one.policy_launch,
                             {value, value, value},
                             0,
                             one.default_iterations + one.policy_iterations,
                             one.default_seconds,
                             one.policy_seconds,
                             one.trouble,
                             one.default_launch});
  }
  for (const TunedContext& one : result.contexts) page.contexts.push_back(ContextOf(result, one));
  page.untried = result.Untried();
  for (const LaunchSummary& one : result.launches) {
    const bool bad = one.status != 0 && !one.ended_by_us;
    page.launches.push_back(
        {one.number, one.purpose, one.seconds,
         one.ended_by_us ? "ended by diapason" : Format("status {}", one.status), bad, one.log});
  }
  page.metric = result.metric.Text();
  page.use = result.UseCommand();
  AddFacts(result, &page);
  page.notes = result.look.notes;
  const std::string captured = result.shares.ByLaunchesText();
  if (!captured.empty()) page.notes.push_back(captured);
  if (result.interrupted) page.notes.insert(page.notes.begin(), "tuning was interrupted");
  return page;
}

}  // namespace diapason::job_tune
