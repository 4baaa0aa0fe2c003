#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataset/recorder.h"
#include "measure/marked_instrument.h"
#include "measure/sweep.h"
#include "model/plan.h"
#include "tune/runoff.h"
#include "tune/session.h"

namespace diapason::tune {

// One tuning, from its first rank to its last row; session.h says what it does. session.cc finds
// what may be faster, session_proof.cc proves it and writes the policy.
class Session {
 public:
  Session(const Work& work, const Options& options, const Watch& watch)
      : work_(work), options_(options), watch_(watch), begin_(std::chrono::steady_clock::now()) {}

  Result<Outcome> Run();

 private:
  // Seconds since the beginning.
  double Passed() const;
  bool Show(Stage stage, const std::string& what);
  Result<std::shared_ptr<measure::Instrument>> Launch();

  // In this order.
  Status Start();
  Status Search();
  Status Learn();
  Status Plan();
  Status Prove();
  Status ProveTogether();
  Status Write();

  // What the store knows of runs before this one; decides about what those died of.
  Result<dataset::Contents> ReadEarlier();
  Result<model::Grid> ReadGrid() const;
  Result<std::string> BeginRun(const char* source, const std::string& plan);
  // Ends the search's run in the store, if it has not ended yet.
  Status EndSearch(bool whole);
  // Takes what comes into the store.
  bool Take(size_t contest, size_t contender, const measure::Reading& reading);
  // Contenders that were not measured and that the model would.
  std::vector<size_t> Hopefuls(size_t contest) const;
  Result<std::vector<measure::PolicyCheck>> Check(const std::vector<Claim>& claims, double seconds,
                                                  const std::string& environment);
  // What a policy runs for a contest.
  Config Decided(const policy::Policy& policy, const measure::Trial& trial) const;
  // What the fewest rounds that can be judged would take.
  double ProofSeconds(const Line& line) const;
  void AddLine(size_t contest, const Winner& winner);
  void NoteFailures();
  void Judge(size_t contest, measure::PolicyCheck check);
  void DropAll(const std::string& why);
  bool Iterations() const { return !contests_.front().trial.workload.empty(); }
  double BlockSeconds(bool proof) const;
  // Rounds of so many samples each that Options::samples allows.
  int Rounds(size_t samples_per_round, int least, int most) const;
  void Calibrate(bool proof);
  Status StartAgain();
  model::Place PlaceOf(const measure::Trial& trial) const;

  const Work& work_;
  const Options& options_;
  const Watch& watch_;
  const std::chrono::steady_clock::time_point begin_;
  double launch_seconds_ = 0;
  bool stopped_ = false;
  std::shared_ptr<measure::Instrument> instrument_;
  std::vector<measure::Contest> contests_;
  measure::Knowledge known_;
  std::string run_;
  std::optional<model::Predictor> predictor_;
  std::unique_ptr<dataset::Recorder> recorder_;
  std::unique_ptr<measure::CalibratedInstrument> calibrated_;
  std::unique_ptr<measure::MarkedInstrument> marked_;  // what search and run-off measure with
  Status trouble_;
  std::map<std::pair<size_t, size_t>, size_t> taken_;  // samples, by contest and contender
  Outcome outcome_;
};

// The collective a policy knows a call by, and its name for people: "allreduce 64KiB".
Collective CollectiveOf(const measure::Trial& trial);
std::string CallText(const measure::Trial& trial);

}  // namespace diapason::tune
