#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/page.h"

namespace diapason::report {

// All data of the page of a tuned job (`diapason tune -- COMMAND`): plain values and texts, drawn
// by assets/job*.js. Times in seconds. A gain of 0 is not known.

// A gain, how many times as fast an iteration is as with the default, and its 95 % interval.
struct JobGain {
  double gain = 0;
  double low = 0;
  double high = 0;
};

// Where the time of an iteration goes in one setting.
struct JobSetting {
  std::string name;   // "library default", "tuned"
  std::string title;  // above its bar
  double seconds = 0;
  bool known = false;  // how it is divided
  double compute = 0;  // without a collective running
  double hidden = 0;
  // By class: what of its time is exposed. Classes are indices into JobPage::classes.
  std::vector<std::pair<size_t, double>> exposed;
  // The interval of its time that the interval of the gain means; 0: none.
  double low = 0;
  double high = 0;
};

// A line of the table below the picture, with the time in every setting; negative: not known.
struct JobPartRow {
  std::string name;
  bool bold = false;
  std::vector<double> seconds;
};

struct JobVerified {
  int launch = 0;  // of a pair: the one with the policy
  JobGain gain;    // not known: it cannot tell
  size_t changes = 0;
  size_t iterations = 0;
  double default_seconds = 0;
  double tuned_seconds = 0;
  std::string note;
  int default_launch = 0;  // of a pair; 0: both took turns in one launch
};

struct JobTried {
  std::string config;
  JobGain gain;
  size_t blocks = 0;
  bool chosen = false;
};

struct JobPageContext {
  std::string label;
  std::string facts;    // sizes, calls and time
  std::string outcome;  // what was chosen, or why nothing was
  bool kept = false;    // it is in the policy
  std::vector<JobTried> tried;
  bool by_launches = false;  // each configuration ran in launches of its own
};

struct JobPageLaunch {
  int number = 0;
  std::string purpose;
  double seconds = 0;
  std::string ended;
  bool bad = false;
  std::string log;
};

struct JobPage {
  std::string title;
  std::string version;
  double made = 0;  // seconds since 1970
  std::string
      verdict;  // "faster", "nothing to gain", "not confirmed", "metric changed", "undecided"
  std::string headline;
  std::string bars_note;  // below the heading of the picture
  std::string method;     // how exposed time is known
  std::vector<std::string> classes;
  std::vector<JobSetting> settings;  // drawn as bars, the default first
  std::vector<JobPartRow> rows;
  JobGain gain;  // over all launches
  size_t gain_launches = 0;
  size_t gain_changes = 0;
  bool by_pairs = false;           // gain_launches are pairs, and there are no changes of turns
  std::string unit = "iteration";  // what times are of, or "launch"
  double default_seconds = 0;
  double tuned_seconds = 0;
  std::string next;  // what one further launch would find
  std::vector<JobVerified> verified;
  std::vector<JobPageContext> contexts;
  std::vector<std::string> untried;
  std::vector<JobPageLaunch> launches;
  std::string metric;
  std::string use;  // lines of a shell
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> notes;
};

std::string JobPageJson(const JobPage& page);
// Texts longer than 400 bytes are cut, and lists after 400 lines, which is said in a note.
std::string JobPageHtml(JobPage page, const std::string& nonce);

}  // namespace diapason::report
