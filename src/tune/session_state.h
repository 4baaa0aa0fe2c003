#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/recorder.h"
#include "measure/marked_measurer.h"
#include "model/plan.h"
#include "search/sweep.h"
#include "tune/final_round.h"
#include "tune/session.h"

namespace diapason::tune {

// One tuning, from its first rank to its last row; session.h says what it does. session.cc finds
// what may be faster (session_final.cc: its probe and final round), session_between.cc looks
// between the sizes, session_proof.cc proves it, and session_write.cc writes the policy.
class TuneSession {
 public:
  TuneSession(const TuneInputs& work, const SessionOptions& options, const ProgressCallback& watch)
      : work_(work), options_(options), watch_(watch), begin_(options.clock()) {}

  Result<TuneOutcome> Run();

 private:
  // Seconds since the beginning.
  double Passed() const;
  // What gives more than there was, see TuneOutcome::more.
  std::string More() const;
  bool Show(Stage stage, const std::string& what);
  Result<std::shared_ptr<measure::Measurer>> Launch();

  // In this order.
  Status Start();
  Status Search();
  Status Learn();
  Status Plan();
  Status VerifyWinners();
  Status ProveTogether();
  Status Write();

  // Parts of Plan: how many launches the final round has, the round itself, and sizes between.
  int FinalLaunches() const;
  Status RunFinal(FinalRound* round, size_t first_case, int launches, double until,
                  size_t samples_per_round);
  Status PoolSameChannels();
  Status MeasureBetween(double until);
  struct Gap;
  std::vector<Gap> FindGaps(bool borders) const;
  std::vector<size_t> InOrder() const;  // of operation and size
  const Config& WinnerConfig(size_t call_case) const;
  search::CallCase CaseBetween(const Gap& gap, uint64_t bytes) const;
  double GainSeen(size_t call_case, const Config& config) const;

  // Parts of VerifyWinners.
  struct Proposal {
    size_t call_case = 0;
    Config config;
    double seconds = 0;   // that it is expected to take
    double priority = 0;  // the higher, the sooner
  };
  std::vector<Proposal> FirstProposals() const;
  std::vector<Proposal> SecondProposals() const;
  void FindNeighbours();
  Status VerifyProposals(std::vector<Proposal> proposals, double seconds, bool first);
  Claim ClaimOf(const Proposal& proposal) const;
  double ProofSeconds(const Proposal& proposal) const;
  void Accept(size_t call_case, std::vector<measure::PolicyCheck> checks);
  std::string RowRemark(const CoveredRange& covered) const;
  std::vector<Stop> StopsOf(Operation operation) const;
  void SettleBetween(std::vector<Stop>* stops, const std::vector<size_t>& lines) const;

  // What the store knows of runs before this one; decides about what those died of.
  Result<dataset::StoreContents> ReadEarlier();
  Result<model::Grid> ReadGrid() const;
  Result<std::string> BeginRun(const char* source, const std::string& plan);
  // Ends the search's run in the store, if it has not ended yet.
  Status EndSearch(bool whole);
  // Takes what comes into the store.
  bool Take(size_t call_case, size_t candidate, const measure::Measurement& measurement);
  // Contenders that were not measured and that the model would.
  std::vector<size_t> PromisingCandidates(size_t call_case) const;
  Result<std::vector<measure::PolicyCheck>> Check(const std::vector<Claim>& claims, double seconds,
                                                  const std::string& environment);
  // What a policy runs for a case.
  Config Decided(const policy::Policy& policy, const measure::Trial& trial) const;
  void AddLine(size_t call_case, const Winner& winner);
  size_t UntriedPairs(size_t call_case) const;
  void NoteFailures();
  void Judge(size_t call_case, measure::PolicyCheck check);
  void DropAll(const std::string& why);
  bool Iterations() const { return !call_cases_.front().trial.workload.empty(); }
  double BlockSeconds(bool proof) const;
  // Rounds of so many samples each that Options::samples allows.
  int Rounds(size_t samples_per_round, int least, int most) const;
  void Calibrate(bool proof);
  Status StartAgain();
  model::CallPlace PlaceOf(const measure::Trial& trial) const;

  const TuneInputs& work_;
  const SessionOptions& options_;
  const ProgressCallback& watch_;
  const double begin_;
  double launch_seconds_ = 0;
  bool stopped_ = false;
  std::shared_ptr<measure::Measurer> measurer_;
  std::vector<search::CallCase> call_cases_;
  search::SamplesByCandidate known_;
  std::string run_;
  std::optional<model::Predictor> predictor_;
  std::unique_ptr<dataset::Recorder> recorder_;
  std::unique_ptr<search::CalibratedMeasurer> calibrated_;
  std::unique_ptr<measure::MarkedMeasurer> marked_;  // what search and final round measure with
  Status trouble_;
  std::map<std::pair<size_t, size_t>, size_t> taken_;  // samples, by case and candidate
  size_t asked_ = 0;             // cases that were asked for: the first so many
  std::vector<Winner> winners_;  // by case
  double last_taken_ = 0;        // when the last sample came
  std::vector<double> cost_;     // by case: real seconds of a sample, the last one's
  TuneOutcome outcome_;
};

// The collective a policy knows a call by, and its name for people: "allreduce 64KiB".
Collective CollectiveOf(const measure::Trial& trial);
std::string CallText(const measure::Trial& trial);

}  // namespace diapason::tune
