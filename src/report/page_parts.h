#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "dataset/store.h"
#include "domain/decision.h"
#include "report/page_data.h"

// The steps of MakePageData, each in its own file.
namespace diapason::report {

// Assigns numbers to configurations.
class ConfigBook {
 public:
  ConfigBook();
  int NumberOf(const dataset::Point& point);
  int NumberOf(Library library, Collective collective, const Config& config);
  const std::string& EnvironmentOf(int config) const {
    return configs_[static_cast<size_t>(config)].environment;
  }
  // Empties the book.
  std::vector<PageConfig> Finish();

 private:
  using Key = std::tuple<std::string, std::string, int, int64_t, std::string>;
  std::map<Key, int> numbers_;
  std::vector<PageConfig> configs_;
};

// Finds or creates the group of a context.
class GroupBook {
 public:
  explicit GroupBook(std::vector<PageGroup>* groups) : groups_(groups) {}
  size_t IndexOf(size_t place, const dataset::Point& point);

 private:
  std::vector<PageGroup>* groups_;
  std::map<std::pair<size_t, dataset::Point>, size_t> known_;
};

// Comparable samples that were taken for the same purpose.
struct PagePart {
  size_t place = 0;
  bool verification = false;
  dataset::StoreContents contents;
};
// Fills places, runs, variables, and counts.
std::vector<PagePart> SplitByPlace(dataset::StoreContents contents, PageData* data);

// The ratio of `time` to `other`; both must be known.
PageFigure RatioOf(const PageFigure& time, const PageFigure& other);

// REQUIRES: not empty.
PageSpread SpreadOf(int config, bool verified, const std::vector<double>& seconds);

void AddSearch(const PagePart& part, ConfigBook* configs, GroupBook* groups, PageData* data);
void AddVerification(const PagePart& part, ConfigBook* configs, GroupBook* groups, PageData* data);
// How the best known result of the search changed with time, by context.
void AddProgress(const PagePart& part, GroupBook* groups, PageData* data);
// How the first policy is used.
PageUse UseOf(const std::vector<PageInput::NamedPolicy>& policies, bool simulated);
// The maps of the policies, then of the choices of the data; then the loss at each size.
void AddMaps(const std::vector<PageInput::NamedPolicy>& policies, ConfigBook* configs,
             PageData* data);
// Marks verified configurations that no policy runs as not kept.
void JudgeByPolicies(const std::vector<PageInput::NamedPolicy>& policies, ConfigBook* configs,
                     PageData* data);
void AddJournals(const std::vector<PageInput::Journal>& journals, ConfigBook* configs,
                 PageData* data);
// One for every place with results, the most important first: that of a policy, then that of the
// newest verification, then the newest.
std::vector<PageHeadline> MakeHeadlines(const PageData& data, dataset::Point::Kind kind);

}  // namespace diapason::report
