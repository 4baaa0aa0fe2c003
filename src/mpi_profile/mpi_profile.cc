#include "mpi_profile/mpi_profile.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"

namespace diapason::mpi_profile {
namespace {

using mpi_record::CallRecord;
using mpi_record::RecordedComm;
using mpi_record::Recording;

Fixed FixedOf(const Recording& recording, const CallRecord& call, const RecordedComm& comm) {
  const MpiCallFacts& facts = FactsOf(static_cast<MpiCall>(call.call));
  if (!recording.open_mpi()) return Fixed::kNotOpenMpi;
  if (!facts.blocking) return Fixed::kNonBlocking;
  if ((comm.facts.flags & mpi_record::kInter) != 0) return Fixed::kInter;
  if (facts.rules == MpiRules::kNone) return Fixed::kNoRules;
  if (comm.facts.ranks < 2) return Fixed::kAlone;
  if ((call.flags & mpi_record::kNotCommutative) != 0) return Fixed::kNotCommutative;
  if (facts.rules == MpiRules::kOpenMpiOnly) return Fixed::kNotSearched;
  return call.bytes == 0 ? Fixed::kAlone : Fixed::kNo;
}

}  // namespace

std::string_view FixedText(Fixed fixed) {
  switch (fixed) {
    case Fixed::kNo:
      break;
    case Fixed::kNotSearched:
      return "calls whose algorithms diapason does not search";
    case Fixed::kNonBlocking:
      return "non-blocking calls";
    case Fixed::kNoRules:
      return "calls that Open MPI has no rules for";
    case Fixed::kInter:
      return "calls on intercommunicators";
    case Fixed::kNotCommutative:
      return "reductions that are not commutative";
    case Fixed::kAlone:
      return "calls of one rank or without data";
    case Fixed::kNotOpenMpi:
      return "calls of another MPI library";
  }
  return "";
}

void ProfileMaker::Add(const std::string& name, const Recording& recording) {
  if (profile_.ranks++ == 0) {
    profile_.library = recording.library;
    profile_.program = recording.program;
    profile_.open_mpi = recording.open_mpi();
  }
  world_ = std::max(world_, static_cast<size_t>(std::max(recording.size, 0)));
  profile_.program_seconds += recording.ProgramSeconds();
  profile_.collective_seconds += recording.CollectiveSeconds();
  dropped_ += recording.head.dropped;
  over_limit_ += recording.head.over_limit;
  cut_ += recording.head.ended == 0 ? 1 : 0;
  AddCalls(recording);
  job_.Add(name, mpi_record::ToJournal(recording));
}

void ProfileMaker::AddCalls(const Recording& recording) {
  std::map<uint32_t, const RecordedComm*> comms;
  for (const RecordedComm& comm : recording.comms) comms[comm.facts.number] = &comm;
  std::map<Key, double> own;
  for (const CallRecord& call : recording.calls) {
    const RecordedComm& comm = *comms.at(call.communicator);
    const Fixed fixed = FixedOf(recording, call, comm);
    const Key key{call.call, call.bytes, comm.facts.ranks, fixed};
    MpiCallClass& one = classes_[key];
    one.call = static_cast<MpiCall>(call.call);
    one.bytes = call.bytes;
    one.ranks = comm.facts.ranks;
    one.fixed = fixed;
    ++one.calls;
    const double seconds = static_cast<double>(call.duration_ns) * 1e-9;
    one.seconds += seconds;
    own[key] += seconds;
    durations_[key].push_back(static_cast<float>(seconds));
    profile_.recorded_seconds += seconds;
    const auto site = recording.sites.find(call.site);
    if (site != recording.sites.end()) ++one.sites[site->second];
  }
  for (const auto& [key, seconds] : own) {
    const auto [at, fresh] = least_.emplace(key, seconds);
    if (!fresh) at->second = std::min(at->second, seconds);
    ++on_[key];
  }
}

Result<MpiProfile> ProfileMaker::Finish() {
  if (profile_.recorded_seconds <= 0) {
    return Invalid(
        "no collective of MPI is in these recordings: the program has called none, or it ended "
        "before its first");
  }
  const auto ranks = static_cast<double>(profile_.ranks);
  profile_.program_seconds /= ranks;
  profile_.collective_seconds /= ranks;
  profile_.recorded_seconds /= ranks;
  profile_.missing = world_ > profile_.ranks ? world_ - profile_.ranks : 0;
  for (auto& [key, one] : classes_) {
    one.quickest = least_.at(key) * static_cast<double>(on_.at(key)) / ranks;
    one.seconds /= ranks;
    std::vector<float>& all = durations_.at(key);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    one.median = static_cast<double>(*middle);
    all = {};
    profile_.classes.push_back(std::move(one));
  }
  std::stable_sort(
      profile_.classes.begin(), profile_.classes.end(),
      [](const MpiCallClass& a, const MpiCallClass& b) { return a.seconds > b.seconds; });
  ASSIGN_OR_RETURN(profile_.job, job_.Finish());
  // Those of a journal are about GPUs.
  profile_.job.notes.clear();
  if (profile_.job.iteration <= 0) {
    profile_.notes.emplace_back(
        "the calls do not repeat in a way that shows iterations: times are of the whole program");
  }
  if (profile_.job.iteration > 0 && profile_.IterationShare() < kMostlyIterations) {
    profile_.notes.push_back(
        Format("the iterations are {:.0f} % of the program's time: it is the whole program that "
               "counts",
               100 * profile_.IterationShare()));
  }
  if (profile_.missing > 0) {
    profile_.notes.push_back(Format("{} of {} ranks have no recording here", profile_.missing,
                                    profile_.missing + profile_.ranks));
  }
  if (cut_ > 0) {
    profile_.notes.push_back(
        cut_ == 1
            ? "1 process did not end in order: its last moments are missing"
            : Format("{} processes did not end in order: their last moments are missing", cut_));
  }
  if (dropped_ > 0) {
    profile_.notes.push_back(
        Format("{} found the buffer full and are in the totals only: DIAPASON_JOURNAL_RECORDS "
               "makes room for more",
               Count(dropped_, "call")));
  }
  if (over_limit_ > 0) {
    profile_.notes.push_back(Format(
        "{} came after the files were full and are in the totals only: DIAPASON_JOURNAL_LIMIT",
        Count(over_limit_, "call")));
  }
  if (!profile_.open_mpi) {
    profile_.notes.push_back("the library is " + profile_.library.substr(0, 60) +
                             ": its calls were recorded, but only Open MPI's can be tuned");
  }
  return std::move(profile_);
}

double MpiProfile::IterationShare() const {
  if (program_seconds <= 0) return 0;
  return std::min(1.0, static_cast<double>(job.iterations) * job.iteration / program_seconds);
}

double MpiProfile::ChangeableShare() const {
  double changeable = 0;
  for (const MpiCallClass& one : classes) changeable += one.fixed == Fixed::kNo ? one.seconds : 0;
  return recorded_seconds > 0 ? changeable / recorded_seconds : 0;
}

std::string MpiProfile::Headline() const {
  const std::string part = job_profile::LargestPart(job);
  if (job.iteration <= 0) {
    return Format("no iterations found in {}; {}", Count(job.calls, "call"), part);
  }
  std::string text = job.source == job_profile::Source::kCalls
                         ? Format("{} calls take ", job_profile::kCallsTogether)
                         : std::string("an iteration takes ");
  text += Format("{}; collectives {} of it ({:.0f} %)", job_profile::Milliseconds(job.iteration),
                 job_profile::Milliseconds(job.times.total), 100 * job.times.total / job.iteration);
  if (job.times.waiting > 0.02 * job.times.total) {
    text += Format(", {} of that waiting for slower ranks",
                   job_profile::Milliseconds(job.times.waiting));
  }
  return text + "; " + part;
}

std::string MpiProfile::ShareText() const {
  return Format("collectives take {:.0f} % of the program's time ({:.2f} s of {:.2f} s)",
                100 * CollectiveShare(), collective_seconds, program_seconds);
}

std::string MpiProfile::RulesText() const {
  std::map<Fixed, double> fixed;
  for (const MpiCallClass& one : classes) fixed[one.fixed] += one.seconds;
  std::vector<std::pair<double, Fixed>> parts;
  for (const auto& [why, seconds] : fixed) {
    if (why != Fixed::kNo && seconds >= 0.005 * recorded_seconds) parts.emplace_back(seconds, why);
  }
  std::sort(parts.rbegin(), parts.rend());
  std::vector<std::string> texts;
  for (const auto& [seconds, why] : parts) {
    texts.push_back(
        Format("{:.0f} % {}", 100 * seconds / recorded_seconds, std::string(FixedText(why))));
  }
  std::string text = Format("Open MPI's rules can change {:.0f} % of the collective time",
                            100 * ChangeableShare());
  if (!texts.empty()) text += "; not: " + Join(texts, ", ");
  return text;
}

Result<MpiProfile> ReadProfile(const std::vector<std::string>& files) {
  ProfileMaker maker;
  std::vector<std::string> unread;
  size_t read_files = 0;
  for (const std::string& file : files) {
    const Result<Recording> read = mpi_record::ReadRecording(file);
    if (!read.ok() && files.size() == 1) return read.status();
    if (!read.ok()) {
      unread.push_back(read.status().message());
      continue;
    }
    ++read_files;
    maker.Add(file, read.value());
  }
  if (read_files == 0) {
    return Invalid(unread.empty() ? "there are no recordings of MPI calls" : unread[0]);
  }
  ASSIGN_OR_RETURN(MpiProfile profile, maker.Finish());
  for (const std::string& why : unread) profile.notes.push_back("left out: " + why);
  return profile;
}

}  // namespace diapason::mpi_profile
