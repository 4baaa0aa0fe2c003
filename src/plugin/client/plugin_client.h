#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "domain/decision.h"

namespace diapason::client {

// Calls a tuner plugin as a collective library does: dlopen, the data symbol of one API version,
// its callbacks. It depends on the published interface only, not on the plugin's sources.
struct CostTableArgs {
  int algorithms = 7;
  int protocols = 3;
  std::vector<float> cells;  // row-major

  size_t Index(int algorithm, int protocol) const {
    return static_cast<size_t>(algorithm) * static_cast<size_t>(protocols) +
           static_cast<size_t>(protocol);
  }
  // The entry a library would choose: the smallest non-negative one, the first of equals, or from
  // 2.31 on the last; -1: none.
  int Cheapest(bool last_of_equals) const;
};

struct LogLine {
  bool warning = false;
  std::string text;
};

class PluginClient {
 public:
  // `api` 1 to 7; 0: the newest version the plugin has, as a library would choose.
  static Result<std::unique_ptr<PluginClient>> Open(const std::string& path, int api);
  virtual ~PluginClient() = default;

  virtual Status Start(const Shape& shape, uint64_t comm_id) = 0;
  struct Support {
    int collnet = 0;
    int nvls = 0;
  };
  // Changes *cost (API v3 and later) or fills in *answer (v1 and v2), as the plugin does. Returns
  // the channel count: 0 leaves it to the library.
  virtual Result<int> Ask(const Question& question, const Support& support, CostTableArgs* cost,
                          Config* answer) = 0;
  virtual Status Stop() = 0;

  int api() const { return api_; }
  const std::string& name() const { return name_; }
  // Whether the library that is acted takes the last of equal costs: from 2.31 on.
  bool last_of_equals() const;
  // The lines the plugin has logged so far.
  static const std::vector<LogLine>& Log();

  // Sets the version that ncclGetVersion reports to the plugin; 0: unknown.
  static void PretendVersion(int version);
  // Sets the library whose log level numbering the plugin uses.
  static void PretendLibrary(Library library);

 protected:
  int api_ = 0;
  std::string name_;
};

}  // namespace diapason::client
