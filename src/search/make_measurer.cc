#include "search/make_measurer.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "comm/backend_facts.h"
#include "dataset/store.h"
#include "domain/vocabulary.h"
#include "launch/own_program.h"
#include "measure/job_measurer.h"
#include "measure/tests_measurer.h"
#include "search/replay.h"

namespace diapason::search {
namespace {

using launch::Launcher;
using measure::BackendOf;
using measure::Measurer;
using measure::Subject;

Result<dataset::StoreContents> ReadReplay(const MeasurerRequest& request) {
  ASSIGN_OR_RETURN(const std::unique_ptr<dataset::SampleStore> store,
                   dataset::SampleStore::Open(request.replay, dataset::SampleStore::Access::kRead));
  return store->Read();
}

Result<std::unique_ptr<Measurer>> MakeReplay(const MeasurerRequest& request, int nodes) {
  ASSIGN_OR_RETURN(const dataset::StoreContents contents, ReadReplay(request));
  std::vector<Subject> subjects = SubjectsIn(contents);
  std::erase_if(subjects, [&](const Subject& subject) {
    return subject.nodes != nodes ||
           (request.ranks.ranks > 0 && subject.ranks != request.ranks.ranks);
  });
  if (subjects.empty()) {
    return NotFound(Format("'{}' has no measurements on {} {}", request.replay, nodes,
                           nodes == 1 ? "node" : "nodes"));
  }
  if (subjects.size() > 1) {
    return Invalid(Format("'{}' has several numbers of ranks on {} {}; choose one with -g",
                          request.replay, nodes, nodes == 1 ? "node" : "nodes"));
  }
  ReplayOptions replay;
  replay.shuffle = request.ranks.seed;
  ASSIGN_OR_RETURN(std::unique_ptr<ReplayMeasurer> measurer,
                   ReplayMeasurer::Create(contents, subjects.front(), replay));
  return std::unique_ptr<Measurer>(std::move(measurer));
}

bool UsesTests(const MeasurerRequest& request) { return !request.tests_folder.empty(); }

// There are nccl-tests and rccl-tests.
Library TestsLibrary(const std::string& backend) {
  const bool rccl = comm::FactsOfBackend(backend).library == Library::kRccl;
  return rccl ? Library::kRccl : Library::kNccl;
}

}  // namespace

// -g is per node where there are several, as GPUs are.
int RanksOn(const MeasurerRequest& request, int nodes) {
  const int here = measure::RanksHere(request.ranks);
  return comm::FactsOfBackend(BackendOf(request.ranks)).simulated ? here : here * nodes;
}
Result<std::unique_ptr<Measurer>> MakeMeasurer(const MeasurerRequest& request, int nodes) {
  if (!request.replay.empty()) return MakeReplay(request, nodes);
  Launcher launcher = request.launcher;
  launcher.nodes = nodes;
  if (launcher.self.empty()) {
    ASSIGN_OR_RETURN(const std::string self, launch::OwnProgram());
    launcher.self = self;
    launcher.as_root = ::geteuid() == 0;
  }
  launcher.ranks = RanksOn(request, nodes);
  if (UsesTests(request)) {
    measure::TestsOptions tests;
    tests.launcher = launcher;
    tests.folder = request.tests_folder;
    tests.library = TestsLibrary(request.ranks.backend);
    tests.sizes = request.sizes;
    ASSIGN_OR_RETURN(std::unique_ptr<measure::TestsMeasurer> measurer,
                     measure::TestsMeasurer::Create(tests, request.operations));
    return std::unique_ptr<Measurer>(std::move(measurer));
  }
  measure::JobMeasurerOptions job;
  job.launcher = launcher;
  job.backend = BackendOf(request.ranks);
  if (comm::FactsOfBackend(job.backend).mpirun && launcher.kind == Launcher::Kind::kLocal) {
    job.launcher.kind = Launcher::Kind::kMpirun;
  }
  job.cluster = request.ranks.cluster;
  job.limit = measure::LimitOf(request.ranks);
  job.seed = request.ranks.seed;
  job.launch_each = request.launch_each;
  if (request.start_limit > 0) job.start_limit = request.start_limit;
  ASSIGN_OR_RETURN(std::unique_ptr<measure::JobMeasurer> measurer,
                   measure::JobMeasurer::Create(job));
  return std::unique_ptr<Measurer>(std::move(measurer));
}
Result<std::vector<CallCase>> CallCasesFor(const MeasurerRequest& request, const SweepPlan& plan,
                                           const Measurer& measurer) {
  if (request.replay.empty()) return MakeCallCases(plan, measurer.subject());
  ASSIGN_OR_RETURN(const dataset::StoreContents contents, ReadReplay(request));
  ASSIGN_OR_RETURN(const CallCasesFound found, CallCasesIn(contents, measurer.subject()));
  return found.call_cases;
}
Result<Subject> ExpectedSubject(const MeasurerRequest& request, int nodes) {
  Subject subject;
  subject.nodes = nodes;
  subject.backend = BackendOf(request.ranks);
  subject.ranks = RanksOn(request, nodes);
  if (subject.backend == "auto") {
    for (const BackendInfo& backend : Backends()) {
      if (!backend.usable) continue;
      subject.backend = backend.name;
      break;
    }
  }
  subject.simulated = comm::FactsOfBackend(subject.backend).simulated;
  if (UsesTests(request) && !subject.simulated) {
    subject.backend = comm::BackendOf(TestsLibrary(subject.backend));
  }
  ASSIGN_OR_RETURN(const Library library,
                   comm::LibraryOf(subject.backend, measure::ClusterOf(request.ranks)));
  subject.library = library;
  return subject;
}

}  // namespace diapason::search
