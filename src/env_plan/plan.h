#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "env_plan/placement.h"
#include "host/machine.h"
#include "knobs/catalogue.h"

namespace diapason::env_plan {

// The user's goal for a job.
enum class PlanGoal : uint8_t { kLatency, kThroughput, kCpu, kBalanced, kDebug };
std::string_view GoalName(PlanGoal goal);
Result<PlanGoal> ParseGoal(std::string_view text);

struct PlanRequest {
  PlanGoal goal = PlanGoal::kBalanced;
  Library library = Library::kNccl;
  int version = 0;  // 0: the newest in the tables
  int ranks = 0;    // per node; 0: as many as there are GPUs
};

struct PlannedSetting {
  std::string name;
  std::string value;
  std::string reason;
  std::string trade;  // its cost; "" for none
};

// A setting that would serve the goal or the hardware, and is left out.
struct LeftOutSetting {
  std::string name;
  std::string value;
  std::string why;
  bool is_default = false;  // because it holds anyway
};

// What no variable can set: to be checked, or decided by the site's administrator.
struct PlanNote {
  std::string topic;  // "GPUDirect RDMA", "traffic class"
  std::string text;
};

struct EnvPlan {
  PlanRequest request;  // with the detected values: version, ranks
  std::vector<PlannedSetting> settings;
  std::vector<LeftOutSetting> left_out;
  std::vector<PlanNote> notes;
  int gpus = 0;  // of the host; 0: none is known
  std::vector<RankBinding> places;
  std::vector<std::string> place_notes;
  std::vector<std::string> steps;           // commands to run, in order, for the user
  std::vector<std::string> docker_options;  // besides -e, e.g. "--ulimit memlock=-1"
};

// Settings for a goal on a machine. A variable is left out, with the reason, if the library does
// not read it at that version or the value is the default; values that only the site can know
// become notes.
EnvPlan MakePlan(const PlanRequest& request, const host::Machine& machine, const CoreOf& cores,
                 const knobs::Catalogue& catalogue);

// Adds settings to a plan after checking the catalogue. Used by the parts of a plan.
class PlanBuilder {
 public:
  PlanBuilder(EnvPlan* plan, const host::Machine& machine, const knobs::Catalogue& catalogue)
      : plan_(plan), machine_(machine), catalogue_(catalogue) {}

  // Sets it, or leaves it out if it is not read or the value is the default.
  void Set(const std::string& name, const std::string& value, const std::string& reason,
           const std::string& trade = "");
  void LeaveOut(const std::string& name, const std::string& value, const std::string& why,
                bool is_default = false);
  void Note(const std::string& topic, const std::string& text);
  // Whether the library reads it at this version, and its default.
  bool Reads(const std::string& name) const;
  std::string DefaultOf(const std::string& name) const;

  EnvPlan* plan() { return plan_; }
  const host::Machine& machine() const { return machine_; }

 private:
  EnvPlan* plan_;
  const host::Machine& machine_;
  const knobs::Catalogue& catalogue_;
};

// The parts: settings for the goal, and for the hardware.
void PlanForGoal(PlanBuilder* builder);
void PlanForNetwork(PlanBuilder* builder);
void PlanForGpus(PlanBuilder* builder);
void PlanForHost(PlanBuilder* builder);

}  // namespace diapason::env_plan
