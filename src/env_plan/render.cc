#include "env_plan/render.h"

#include <algorithm>

#include "base/text.h"
#include "domain/library_version.h"

namespace diapason::env_plan {
namespace {

constexpr size_t kWidth = 96;

// Wraps prose; the first line gets `head`, the others `more`.
std::string Wrap(const std::string& text, const std::string& head, const std::string& more) {
  std::string out;
  std::string line = head;
  bool empty = true;
  for (const std::string_view word : Split(text, ' ')) {
    if (!empty && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = more;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return out + line + "\n";
}
std::string Comment(const std::string& text) { return Wrap(text, "# ", "#   "); }

std::string Title(const EnvPlan& plan) {
  return Format("{} {}, goal {}", std::string(LibraryTitle(plan.request.library)),
                LibraryVersionText(plan.request.version), std::string(GoalName(plan.request.goal)));
}

std::string Assignment(const PlannedSetting& setting) {
  return setting.name + "=" + ShellWord(setting.value);
}

std::string NothingToSet(const EnvPlan& plan) {
  return plan.request.goal == PlanGoal::kBalanced
             ? "nothing to set: the defaults are the balance of latency, bandwidth and CPU time"
             : "nothing to set";
}

std::string PlaceText(const RankBinding& place) {
  std::string text = Format("rank {}", place.rank);
  if (place.gpu >= 0) text += Format(", GPU {}", place.gpu);
  if (place.node >= 0) text += Format(", node {}", place.node);
  return text;
}

// Pinning to all CPUs has no effect.
bool WorthPinning(const EnvPlan& plan) {
  if (plan.places.empty()) return false;
  if (plan.places.size() == 1) return !plan.places.front().whole_node;
  return true;
}

std::string Comments(const EnvPlan& plan) {
  std::string text;
  for (const LeftOutSetting& setting : plan.left_out) {
    text += Comment((setting.is_default ? "default: " : "left out: ") + setting.name +
                    (setting.value.empty() ? "" : "=" + setting.value) + ": " + setting.why);
  }
  for (const PlanNote& note : plan.notes) text += Comment(note.topic + ": " + note.text);
  return text;
}

std::string PlaceComments(const EnvPlan& plan) {
  std::string text;
  for (const std::string& note : plan.place_notes) text += Comment(note);
  return text;
}

std::string AllCpus(const EnvPlan& plan) {
  std::vector<int> cpus;
  for (const RankBinding& place : plan.places) {
    cpus.insert(cpus.end(), place.cpus.begin(), place.cpus.end());
  }
  return CpuListText(ParseCpuList(CpuListText(cpus)));
}

bool FitsExport(const std::string& value) {
  return value.find_first_of(",'\"\\ \t\n$`=") == std::string::npos;
}

}  // namespace

Result<PlanFormat> ParsePlanFormat(std::string_view text) {
  const std::vector<std::string> names = {"text", "shell", "slurm", "docker", "json"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (FoldName(text) == names[i]) return static_cast<PlanFormat>(i);
  }
  return Invalid(Format("unknown format '{:.60}'", std::string(text)) + Suggestion(text, names));
}

std::string PlanText(const EnvPlan& plan) {
  std::string text = Title(plan) + "\n\n";
  if (plan.settings.empty()) text += NothingToSet(plan) + "\n";
  for (const PlannedSetting& setting : plan.settings) {
    text += "set " + Assignment(setting) + "\n";
    text += Wrap(setting.reason, "  why    ", "         ");
    if (!setting.trade.empty()) text += Wrap(setting.trade, "  costs  ", "         ");
  }
  if (!plan.left_out.empty()) text += "\nleft out\n";
  for (const LeftOutSetting& setting : plan.left_out) {
    text +=
        Wrap(setting.name + (setting.value.empty() ? "" : "=" + setting.value) + ": " + setting.why,
             "  ", "    ");
  }
  if (WorthPinning(plan)) {
    text += "\nplace the ranks: before each rank's command\n";
    for (const RankBinding& place : plan.places) {
      text += "  " + PlaceText(place) + ": " + NumactlPrefix(place) + "\n";
    }
    text += "  the CPUs alone, without numactl: " + TasksetPrefix(plan.places.front()) +
            " for rank 0, and so on\n";
    text += "  or one line for all ranks:\n    " + WrapperLine(plan.places) + " COMMAND\n";
  }
  for (const std::string& note : plan.place_notes) text += Wrap(note, "  ", "  ");
  if (!plan.steps.empty()) text += "\nthen\n";
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    text += Wrap(plan.steps[i], Format("  {}. ", i + 1), "     ");
  }
  if (!plan.notes.empty()) text += "\nto know\n";
  for (const PlanNote& note : plan.notes) text += Wrap(note.topic + ": " + note.text, "  ", "    ");
  return text;
}

std::string PlanShell(const EnvPlan& plan) {
  std::string text = Comment(Title(plan));
  if (plan.settings.empty()) text += Comment(NothingToSet(plan));
  for (const PlannedSetting& setting : plan.settings) {
    text += "\n" + Comment(setting.reason);
    if (!setting.trade.empty()) text += Comment("costs: " + setting.trade);
    text += "export " + Assignment(setting) + "\n";
  }
  text += "\n" + Comments(plan);
  if (WorthPinning(plan)) {
    text += "\n" + Comment("Put this before the command of every rank:");
    text += "# " + WrapperLine(plan.places) + " COMMAND\n";
    text += Comment("or, rank by rank:");
    for (const RankBinding& place : plan.places) {
      text += "#   " + PlaceText(place) + ": " + NumactlPrefix(place) + "  (or " +
              TasksetPrefix(place) + ")\n";
    }
  }
  text += PlaceComments(plan);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    text += Comment(Format("{}. ", i + 1) + plan.steps[i]);
  }
  return text;
}

std::string PlanSlurm(const EnvPlan& plan) {
  std::string text = "#!/bin/bash\n" + Comment(Title(plan));
  std::string exported = "ALL";
  std::string lines;
  for (const PlannedSetting& setting : plan.settings) {
    if (FitsExport(setting.value)) {
      exported += "," + setting.name + "=" + setting.value;
    } else {
      lines += Comment(setting.name + " has what --export cannot carry:");
      lines += "export " + Assignment(setting) + "\n";
    }
  }
  text += Format("#SBATCH --ntasks-per-node={}\n", plan.request.ranks);
  text += "#SBATCH --export=" + exported + "\n";
  size_t least = 0;
  for (const RankBinding& place : plan.places) {
    least = least == 0 ? place.cpus.size() : std::min(least, place.cpus.size());
  }
  if (least > 0) text += Format("#SBATCH --cpus-per-task={}\n", least);
  // All GPUs, whatever the number of ranks: the placement assumes that rank r finds GPU r.
  if (plan.gpus > 0) text += Format("#SBATCH --gpus-per-node={}\n", plan.gpus);
  if (WorthPinning(plan)) text += "#SBATCH --exclusive\n";
  text += "\n" + lines;
  for (const PlannedSetting& setting : plan.settings) {
    text += Comment(setting.name + ": " + setting.reason +
                    (setting.trade.empty() ? "" : "; costs: " + setting.trade));
  }
  if (plan.settings.empty()) text += Comment(NothingToSet(plan));
  text += Comments(plan) + PlaceComments(plan);
  for (const std::string& step : plan.steps) text += Comment(step);
  std::string bind;
  if (WorthPinning(plan)) {
    std::vector<std::string> masks;
    masks.reserve(plan.places.size());
    for (const RankBinding& place : plan.places) masks.push_back(CpuMask(place.cpus));
    text += Comment("The masks name the node's own CPUs: they need the whole node, --exclusive.");
    bind = " --cpu-bind=mask_cpu:" + Join(masks, ",") + " --mem-bind=local";
  }
  text += Comment("sbatch THIS_FILE COMMAND ARGUMENTS...");
  return text + "srun" + bind + " --export=" + exported + " \"$@\"\n";
}

std::string PlanDocker(const EnvPlan& plan) {
  std::string text = Comment(Title(plan));
  for (const PlannedSetting& setting : plan.settings) {
    text += Comment(setting.name + ": " + setting.reason +
                    (setting.trade.empty() ? "" : "; costs: " + setting.trade));
  }
  if (plan.settings.empty()) text += Comment(NothingToSet(plan));
  text += Comments(plan) + PlaceComments(plan);
  for (const std::string& step : plan.steps) text += Comment(step);
  const std::string wrapper = WorthPinning(plan) ? WrapperLine(plan.places) : "";
  if (!wrapper.empty()) {
    text += Comment(
        "In the container, put this before the command of every rank (the image needs numactl):");
    text += "# " + wrapper + " COMMAND\n";
  }
  text += "docker run \\\n";
  for (const PlannedSetting& setting : plan.settings)
    text += "  -e " + Assignment(setting) + " \\\n";
  for (const std::string& option : plan.docker_options) text += "  " + option + " \\\n";
  if (!wrapper.empty()) text += "  --cpuset-cpus=" + AllCpus(plan) + " \\\n";
  // Docker's default seccomp filter permits binding memory only with this capability.
  if (wrapper.find("--membind") != std::string::npos) text += "  --cap-add=SYS_NICE \\\n";
  return text + "  IMAGE COMMAND\n";
}

}  // namespace diapason::env_plan
