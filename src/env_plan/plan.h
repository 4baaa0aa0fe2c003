#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "env_plan/placement.h"
#include "host/machine.h"
#include "knobs/catalogue.h"

namespace diapason::env_plan {

// What somebody wants of a job.
enum class PlanGoal : uint8_t { kLatency, kThroughput, kCpu, kBalanced, kDebug };
std::string_view GoalName(PlanGoal goal);
Result<PlanGoal> ParseGoal(std::string_view text);

struct PlanRequest {
  PlanGoal goal = PlanGoal::kBalanced;
  Library library = Library::kNccl;
  int version = 0;  // 0: the newest the tables know
  int ranks = 0;    // per node; 0: as many as there are GPUs
};

struct PlannedSetting {
  std::string name;
  std::string value;
  std::string reason;
  std::string trade;  // what it costs; "" for nothing
};

// A setting that belongs to the goal or the hardware, and is not set.
struct LeftOutSetting {
  std::string name;
  std::string value;
  std::string why;
  bool is_default = false;  // because it holds anyway
};

// What no variable can do: to be looked at, or decided by whoever knows the site.
struct PlanNote {
  std::string topic;  // "GPUDirect RDMA", "traffic class"
  std::string text;
};

struct EnvPlan {
  PlanRequest request;  // with what was found out: version, ranks
  std::vector<PlannedSetting> settings;
  std::vector<LeftOutSetting> left_out;
  std::vector<PlanNote> notes;
  int gpus = 0;  // of the host; 0: none is known
  std::vector<RankBinding> places;
  std::vector<std::string> place_notes;
  std::vector<std::string> steps;           // commands to run, in order, for people
  std::vector<std::string> docker_options;  // beside -e, e.g. "--ulimit memlock=-1"
};

// Settings for a goal on a machine. Nothing is set that the library does not read at that version,
// that is the default there, or whose value only the site can know: the first two are left out
// with the reason, the last are notes.
EnvPlan MakePlan(const PlanRequest& request, const host::Machine& machine, const CoreOf& cores,
                 const knobs::Catalogue& catalogue);

// Puts settings into a plan after asking the catalogue. The parts of a plan use it.
class PlanBuilder {
 public:
  PlanBuilder(EnvPlan* plan, const host::Machine& machine, const knobs::Catalogue& catalogue)
      : plan_(plan), machine_(machine), catalogue_(catalogue) {}

  // Sets it, or leaves it out where it is not read or is the default.
  void Set(const std::string& name, const std::string& value, const std::string& reason,
           const std::string& trade = "");
  void LeaveOut(const std::string& name, const std::string& value, const std::string& why,
                bool is_default = false);
  void Note(const std::string& topic, const std::string& text);
  // Whether the library reads it at this version, and what holds when it is not set.
  bool Reads(const std::string& name) const;
  std::string DefaultOf(const std::string& name) const;

  EnvPlan* plan() { return plan_; }
  const host::Machine& machine() const { return machine_; }

 private:
  EnvPlan* plan_;
  const host::Machine& machine_;
  const knobs::Catalogue& catalogue_;
};

// The parts: what the goal asks for, and what the hardware asks for.
void PlanForGoal(PlanBuilder* builder);
void PlanForNetwork(PlanBuilder* builder);
void PlanForGpus(PlanBuilder* builder);
void PlanForHost(PlanBuilder* builder);

}  // namespace diapason::env_plan
