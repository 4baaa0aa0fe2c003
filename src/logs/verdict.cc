#include "logs/verdict.h"

#include <algorithm>

#include "base/text.h"

namespace diapason::logs {
namespace {

using messages::Cause;

constexpr int kLeastCause = 23;     // what weighs less only follows from a fault, or is vague
constexpr int kSuspicion = 40;      // and below: a hint, not a proof
constexpr int kStrong = 50;         // explains time-outs and lost connections
constexpr int kLeastDemoting = 30;  // a vague cause leaves other findings as they are
constexpr int kNear = 6;            // causes that differ by no more stand beside each other
constexpr size_t kMostEvidence = 5;
constexpr size_t kMostNamed = 3;    // consequences that are named
constexpr size_t kMostTitle = 110;  // of a consequence

bool Earlier(const Suspect& a, const Suspect& b) {
  if (a.time.size() == b.time.size() && a.time != b.time) return a.time < b.time;
  if (a.spot.line == 0 || b.spot.line == 0) return a.spot.line > b.spot.line;
  if (a.spot.file != b.spot.file) return a.spot.file < b.spot.file;
  return a.spot.line < b.spot.line;
}

bool MoreCausal(const Suspect& a, const Suspect& b) {
  if (a.weight != b.weight) return a.weight > b.weight;
  return Earlier(a, b);
}

bool Hang(const Suspect& suspect) {
  return suspect.finding.id.starts_with("hang.") || suspect.finding.id == "perf.unfinished" ||
         suspect.finding.id.starts_with("flight.") || suspect.finding.id == "op.behind" ||
         suspect.finding.id.starts_with("store.");
}

// Conditions that explain a hang, and that mean little without one.
bool ExplainsHang(const Suspect& suspect) {
  const std::string& id = suspect.finding.id;
  return id == "amd.iommu" || id == "amd.fine-grain" || id == "link.p2p-disabled" ||
         id == "ib.event" || id == "env.differs" || id == "net.virtual-interface";
}

void Reweigh(const LogFacts& facts, std::vector<Suspect>* suspects) {
  const bool hang = std::any_of(suspects->begin(), suspects->end(), [](const Suspect& suspect) {
    return Hang(suspect) || suspect.finding.id == "job.time-limit" ||
           suspect.finding.id == "job.cancelled";
  });
  for (Suspect& suspect : *suspects) {
    if (hang && ExplainsHang(suspect)) {
      const int raised = std::clamp(suspect.weight + 11, 44, 60);
      suspect.weight = std::max(suspect.weight, raised);
    }
    // What the launcher saw fail first.
    const bool named = facts.root_failure.rank >= 0 && suspect.rank == facts.root_failure.rank;
    if (named && suspect.weight > kStrong) suspect.weight += 2;
  }
}

// Whether both are one fault, in other words.
bool Same(const Suspect& root, const Suspect& other) {
  return other.weight > 0 && other.finding.id == root.finding.id &&
         (root.cause == Cause::kResource || root.cause == Cause::kHardware ||
          root.cause == Cause::kNetwork);
}

// Whether `other` is a consequence of `root`.
bool Follows(const Suspect& root, const Suspect& other) {
  if (other.weight <= 0 || root.weight < kLeastCause) return false;
  if (other.cause == Cause::kCascade || other.weight < kLeastCause) return true;
  if (Hang(other) && other.weight < root.weight) return true;
  return other.cause == Cause::kNetwork && other.weight + kNear < root.weight &&
         root.weight > kStrong;
}

std::string Shortened(const std::string& title) {
  return title.size() <= kMostTitle ? title : title.substr(0, kMostTitle - 3) + "...";
}

// "and 12 lines that follow from it: ...; ..."
std::string FollowText(const std::vector<const Suspect*>& folded, uint64_t lines) {
  std::vector<std::string> titles;
  for (const Suspect* suspect : folded) {
    if (titles.size() == kMostNamed) break;
    titles.push_back(Shortened(suspect->finding.title));
  }
  const size_t more = folded.size() - titles.size();
  return Format("and {} that {} from it: {}{}", Count(lines, "line"),
                lines == 1 ? "follows" : "follow", Join(titles, "; "),
                more > 0 ? Format("; and {} more kinds", more) : "");
}

std::string Read(const LogFacts& facts) {
  std::string text = Count(facts.files.size(), "file");
  size_t ranks = 0;
  for (const LoggedComm& communicator : facts.communicators) {
    ranks = std::max(ranks, communicator.members.size());
  }
  if (ranks > 0) text += ", " + Count(ranks, "rank");
  return text;
}

Verdict Healthy(const LogFacts& facts, const std::vector<Finding>& findings) {
  Verdict verdict;
  verdict.text = "No failure found in " + Read(facts);
  const auto worst =
      std::max_element(findings.begin(), findings.end(),
                       [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  if (worst == findings.end() || worst->severity < Severity::kWarning) return verdict;
  verdict.finding = worst->id;
  const bool unknown = worst->id == "warn.other" || worst->id == "log.error-line";
  if (unknown) {
    verdict.text = "No failure of a known kind in " + Read(facts) +
                   "; the most suspicious line: " + worst->title;
    return verdict;
  }
  verdict.text = worst->severity == Severity::kError
                     ? "Wrong, without a sign that the job failed: " + worst->title
                     : verdict.text + "; the most important remark: " + worst->title;
  return verdict;
}

std::string Sentence(const Verdict& verdict, const Suspect& root) {
  std::string text = verdict.certainty == "cause"       ? "Cause: "
                     : verdict.certainty == "suspected" ? "Suspected cause: "
                                                        : "Cause not known: ";
  if (verdict.certainty == "unknown") {
    text += root.cause == Cause::kCascade
                ? "the logs have only what follows from it; the first is: "
                : "the most suspicious line is: ";
  }
  text += root.finding.title;
  if (!verdict.since.empty()) text += "; since " + verdict.since;
  if (!verdict.where.empty()) text += " (" + verdict.where + ")";
  if (verdict.follows > 0) {
    text += "; " + Count(verdict.follows, "line") +
            (verdict.follows == 1 ? " follows" : " follow") + " from it";
  }
  return text;
}

}  // namespace

int WeightOf(const Finding& finding) {
  if (finding.severity < Severity::kWarning) return 0;
  static constexpr std::pair<std::string_view, int> kWeights[] = {
      {"version.mismatch", 84},    {"rank.duplicate-gpu", 80},
      {"rank.twice", 62},          {"rank.count-differs", 62},
      {"flight.mismatch", 61},     {"op.mismatch", 61},
      {"env.differs", 59},         {"net.wrong-interface", 60},
      {"plugin.missing", 56},      {"perf.wrong", 52},
      {"rank.left", 45},           {"flight.behind", 44},
      {"flight.missing-dump", 42}, {"flight.network", 41},
      {"hang.timeout", 41},        {"flight.", 40},
      {"op.behind", 39},           {"hang.suspect", 38},
      {"hang.init", 33},           {"version.driver", 27},
      {"hang.proxy", 25},          {"perf.unfinished", 24},
      {"op.returned", 9},
  };
  for (const auto& [id, weight] : kWeights) {
    if (finding.id != id && !(id.ends_with('.') && finding.id.starts_with(id))) continue;
    if (finding.id == "env.differs" && finding.severity < Severity::kError) return 0;
    return weight;
  }
  return 0;
}

Diagnosis Judge(const LogFacts& facts, std::vector<Suspect> suspects) {
  Reweigh(facts, &suspects);
  std::stable_sort(suspects.begin(), suspects.end(), MoreCausal);
  Diagnosis diagnosis;
  std::vector<Finding> rest;
  const bool failed = !suspects.empty() && suspects[0].weight > 0 &&
                      std::any_of(suspects.begin(), suspects.end(), [](const Suspect& suspect) {
                        return suspect.weight > 0 && suspect.finding.severity == Severity::kError;
                      });
  if (!failed) {
    for (Suspect& suspect : suspects) rest.push_back(std::move(suspect.finding));
    SortBySeverity(&rest);
    diagnosis.verdict = Healthy(facts, rest);
    diagnosis.findings = std::move(rest);
    return diagnosis;
  }
  Suspect& root = suspects[0];
  std::vector<const Suspect*> folded;
  Verdict& verdict = diagnosis.verdict;
  for (size_t i = 1; i < suspects.size(); ++i) {
    Suspect& other = suspects[i];
    if (Same(root, other)) {
      std::vector<std::string>& evidence = root.finding.evidence;
      for (const std::string& line : other.finding.evidence) {
        if (evidence.size() < kMostEvidence) evidence.push_back(line);
      }
      continue;
    }
    if (Follows(root, other)) {
      folded.push_back(&other);
      verdict.follows += other.lines;
      continue;
    }
    // Remarks on speed and settings, and weaker suspicions, are not why this job failed.
    if (other.weight + kNear < root.weight && root.weight > kLeastDemoting) {
      other.finding.severity = std::min(other.finding.severity, Severity::kNote);
    }
    rest.push_back(std::move(other.finding));
  }
  root.finding.severity = Severity::kError;
  if (!folded.empty()) root.finding.evidence.push_back(FollowText(folded, verdict.follows));
  verdict.certainty = root.weight < kLeastCause || root.cause == Cause::kCascade ? "unknown"
                      : root.weight <= kSuspicion                                ? "suspected"
                                                                                 : "cause";
  verdict.finding = root.finding.id;
  verdict.cause_class = std::string(messages::CauseName(root.cause));
  verdict.rank = root.rank;
  verdict.who = root.who;
  verdict.since = root.time;
  if (root.spot.line > 0) {
    verdict.where = facts.Where(root.spot);
  } else if (!root.finding.evidence.empty()) {
    const std::string& evidence = root.finding.evidence[0];
    verdict.where = evidence.substr(0, evidence.find(": "));
    if (verdict.since.empty()) verdict.since = TimeIn(evidence.substr(verdict.where.size()));
  }
  verdict.text = Sentence(verdict, root);
  if (verdict.certainty == "unknown" && facts.root_failure.rank >= 0) {
    // The rank is known, if not the cause.
    verdict.rank = facts.root_failure.rank;
    verdict.text += Format("; the launcher saw rank {}{} fail first: its output has the cause",
                           facts.root_failure.rank,
                           facts.root_failure.host.empty() ? "" : " on " + facts.root_failure.host);
  }
  SortBySeverity(&rest);
  diagnosis.findings.push_back(std::move(root.finding));
  for (Finding& finding : rest) diagnosis.findings.push_back(std::move(finding));
  return diagnosis;
}

}  // namespace diapason::logs
