#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/interval_text.h"
#include "base/stats.h"
#include "dataset/check.h"
#include "dataset/store.h"
#include "domain/finding.h"
#include "journal/compare.h"
#include "journal/reader.h"
#include "policy/policy.h"

namespace diapason::report {

// All data of the page of `diapason report`: written as JSON by page_json.cc, drawn by the scripts
// in assets/. Medians, intervals and counts; no single samples.

// With fewer rounds the median has no 95 % interval: the probability that all of them lie on one
// side of it is above 5 %.
inline constexpr size_t kLeastJudged = kLeastForInterval95;

// A time in seconds, or a gain where stated.
struct PageFigure {
  size_t samples = 0;  // 0: not known
  double median = 0;
  Interval interval;  // of the median, 95 %
  bool known() const { return samples > 0; }
};

// The distribution of the samples behind a figure: their 0, 10, 25, 50, 75, 90 and 100 % quantiles,
// in seconds.
inline constexpr double kSpreadLevels[] = {0, 0.1, 0.25, 0.5, 0.75, 0.9, 1};
struct PageSpread {
  int config = 0;
  bool verified = false;  // of the verification, else of the search
  size_t samples = 0;
  std::vector<double> quantiles;
};

// A configuration, listed once for the whole page: its index is its number, and determines its
// colour. Number 0 is the library's own choice.
struct PageConfig {
  std::string text;
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  int64_t segment_bytes = 0;
  std::string environment;
  // Configurations that differ in channels, segments or environment only share a number; the
  // default is 0.
  int family = 0;
};

// Figures are comparable within a place: one library, version and kind of machine.
struct PagePlace {
  std::string library;
  std::string version;
  std::string gpu;
  std::string driver;
  std::string topology;
  std::string hosts;
  std::string tool;
  bool simulated = false;
  size_t runs = 0;
  size_t samples = 0;
  double first = 0;  // seconds since 1970; 0: unknown
  double last = 0;
};

struct PageRun {
  std::string id;
  std::string source;
  std::string origin;
  double started = 0;
  std::string state;
  size_t place = 0;
  size_t samples = 0;
};

// One configuration at one size.
struct PageCell {
  int config = 0;
  PageFigure time;
  bool tie = false;  // the data do not distinguish it from the best
  size_t failures = 0;
};

// The certainty of a size's winner.
enum class Certainty : uint8_t {
  kClear,  // its interval does not overlap the default's
  kFew,    // no overlap, but too few samples for a 95 % interval
  kTie,    // the intervals overlap: the default is kept
  kAlone,  // the default was not measured
};
const char* CertaintyName(Certainty certainty);

struct PageSize {
  uint64_t bytes = 0;
  std::vector<PageCell> cells;  // fastest first
  size_t left_out = 0;          // cells omitted to keep the file small
  Certainty certainty = Certainty::kAlone;
  int chosen = -1;         // the choice of the first policy, or else of the data; -1: unknown
  PageFigure lost;         // the default's time over the best's
  PageFigure lost_chosen;  // the chosen one's
  // Of the default and of the best in the search.
  std::vector<PageSpread> spreads;
  const PageCell* Find(int config) const;
};

// Library default and tuned configuration, measured alternately, round by round.
struct PageVerified {
  uint64_t bytes = 0;
  PageFigure standard;
  PageFigure tuned;  // unknown if the default was kept
  int config = 0;
  PageFigure gain;  // the default's time over the tuned one's, of every round
  // "faster", "slower", "no difference", "too few rounds", "left alone", "failed"; for
  // configurations that the policies do not run "not kept", and "default only" if they run an
  // unverified one.
  std::string verdict;
  // Whether a policy runs it. Without policies, verified configurations count as kept.
  bool kept = true;
  std::vector<PageSpread> spreads;  // of the default and of the other
};

// The best known result of a search after some of its samples: the geometric mean, over the sizes
// that have a default, of the default's time over that of the fastest configuration sampled so far.
// Configurations count with the median of all their samples.
struct PageProgress {
  double seconds = 0;  // since the first sample
  size_t samples = 0;
  double gain = 1;
};

// All sizes of one context.
struct PageGroup {
  dataset::Point context;  // without size and configuration
  size_t place = 0;
  std::string label;      // "allreduce, 4 ranks on 1 node, f32 sum"
  std::string shape;      // the same without the collective
  double bus_factor = 0;  // bytes over time times this is the bus bandwidth; 0: none
  std::vector<PageSize> sizes;
  std::vector<PageVerified> verified;
  // The policies' choice for every size of the search and the verification; 0: all of them leave it
  // to the library. Of several the first that does not. Empty: no policy is for this library.
  std::map<uint64_t, int> decided;
  // Every improvement of the search, then its end. Empty: samples without a time of day, or nothing
  // to compare.
  std::vector<PageProgress> progress;
};

// How a policy is used: lines to copy, and a remark.
struct PageUse {
  std::string policy;  // its path; "": there is no policy
  std::vector<std::string> lines;
  std::string remark;
};

// A range of sizes with one decision.
struct PageDecision {
  uint64_t first = 0;
  uint64_t last = 0;
  int config = 0;
  int line = 0;        // of the policy; 0: no row
  std::string row;     // as the policy has it
  std::string remark;  // the policy's remark on the row
  std::string why;
  struct Proof {
    uint64_t bytes = 0;
    PageFigure gain;
    bool verified = false;
  };
  std::vector<Proof> proofs;  // the evidence, size by size
};
struct PageMapRow {
  std::string label;
  int group = -1;  // -1: nothing was measured there
  std::vector<PageDecision> decisions;
};
struct PageMap {
  std::string name;  // the policy's file; "" for the choice of the data
  std::string origin;
  std::string digest;
  size_t rules = 0;
  std::vector<PageMapRow> rows;
};

struct PageFailure {
  size_t group = 0;
  uint64_t bytes = 0;
  int config = 0;
  std::string outcome;
  size_t count = 0;
  std::string note;
};

struct PageLearning {
  struct Arm {
    int config = 0;
    std::string state;  // "in use", "being tried", ""
    size_t blocks = 0;
    uint64_t samples = 0;
    double seconds = 0;
    PageFigure ratio;  // to the default in the same epoch, over the blocks; below 1 is faster
    double skew = 0;
  };
  struct Block {
    uint32_t epoch = 0;
    size_t arm = 0;
    double ratio = 0;  // 0: the default did not run in this epoch
    double seconds = 0;
    uint32_t samples = 0;
  };
  std::string label;
  std::string journal;
  bool iterations = false;
  size_t epochs = 0;
  std::vector<Arm> arms;
  std::vector<Block> blocks;
  std::vector<uint32_t> held;  // epochs that were held, because no proposal was there in time
  size_t left_out = 0;         // blocks
};
struct PageJournal {
  std::string name;
  std::string host;
  int pid = 0;
  std::string communicators;
  size_t decisions = 0;
  size_t runs = 0;
  size_t rewards = 0;
  uint64_t dropped = 0;
  size_t bad_lines = 0;
  bool ended = false;
};

// The results of `diapason doctor` on the machine where the report is written.
struct PageDoctor {
  std::string host;  // "": not checked
  std::vector<std::string> machine;
  std::vector<Finding> findings;
  struct Item {
    std::string state;
    std::string text;
    std::string because;
  };
  std::vector<Item> checklist;
};

struct PageVariable {
  std::string name;
  std::string value;
  size_t runs = 0;     // in whose environment it was
  size_t samples = 0;  // for which it was set explicitly
};

// Sizes of several contexts, counted together.
struct PageExtent {
  size_t contexts = 0;
  size_t sizes = 0;  // different ones
};
// "10 sizes", or "40 cases, 10 sizes in each of 4 contexts".
std::string CasesText(size_t count, const PageExtent& extent);

// The first lines of the page: of one place, because different libraries are never pooled.
struct PageHeadline {
  size_t place = 0;
  bool verified = false;  // from verification, else from the search
  PageFigure gain;        // geometric mean over `sizes`; samples are those of all of them
  size_t sizes = 0;       // that were changed
  size_t improved = 0;    // clearly
  size_t no_difference = 0;
  size_t slower = 0;
  size_t too_few = 0;  // with too few samples; with one of these the gain has no 95 % interval
  size_t left_alone = 0;
  size_t only_default = 0;  // of those left alone: no other configuration was tried
  PageExtent changed_extent;
  PageExtent left_extent;
  PageExtent measured_extent;
  // With a verification and policies, the members above count only what the policies run, and the
  // following are valid.
  bool by_policy = false;
  size_t measured = 0;    // all sizes of search and verification
  size_t not_kept = 0;    // of those left alone: verified with another configuration
  size_t unverified = 0;  // changed, but the running configuration was not verified
  PageFigure all;         // geometric mean over `measured`, 1 for those left alone; may be unknown
  std::string worst;      // the collective with the least gain; "": there is none
  uint64_t worst_bytes = 0;
  PageFigure worst_gain;
  bool tells() const { return sizes + left_alone + unverified > 0; }
};

struct PageData {
  std::string title;
  std::string sentence;  // of the command that measured; "": LeadText makes one
  std::string version;
  double made = 0;  // seconds since 1970
  size_t samples = 0;
  size_t simulated = 0;     // of those
  PageHeadline headline;    // for collectives: the policy's, or that of the newest check
  PageHeadline iterations;  // of whole iterations
  std::vector<PageHeadline> other_headlines;  // of other places
  std::vector<PageHeadline> other_iterations;
  std::vector<std::string> notes;  // omissions and assumptions
  std::vector<PageConfig> configs;
  std::vector<PagePlace> places;
  std::vector<PageRun> runs;
  std::vector<PageGroup> groups;  // of collectives and of whole iterations
  std::vector<PageMap> maps;
  PageUse use;
  std::vector<PageFailure> failures;
  std::vector<PageLearning> learning;
  std::vector<PageJournal> journals;
  journal::JournalComparison::Report agreement;
  std::vector<Finding> trust;  // data that should not be trusted
  std::vector<PageVariable> variables;
  PageDoctor doctor;
};

struct PageInput {
  std::string title;
  std::string headline;  // as in ReportRequest
  double now = 0;
  dataset::StoreContents contents;
  struct Journal {
    std::string name;
    journal::JournalContents contents;
  };
  std::vector<Journal> journals;
  struct NamedPolicy {
    std::string name;
    policy::Policy policy;
    std::string path;  // "": the name is the path
  };
  std::vector<NamedPolicy> policies;
  PageDoctor doctor;
  std::vector<std::string> notes;
};
PageData MakePageData(PageInput input);

// Limits of what is shown. The least important parts are removed first, with a note.
struct PageLimits {
  size_t cells = 40000;
  size_t rows = 400;     // of each list of runs, failures, variables, journals, differences
  size_t blocks = 6000;  // of learning curves
  size_t text = 400;     // bytes of any single text
  size_t spreads = 4000;
  PageLimits Smaller() const;
};
void LimitPage(const PageLimits& limits, PageData* data);

}  // namespace diapason::report
