#pragma once

#include "dataset/recorder.h"
#include "measure/measurer.h"

namespace diapason::measure {

// Writes down what is measured before it is measured: every trial begins with everything measured
// so far, and the name of what comes, in the store. So a process that dies of a configuration has
// lost nothing, and the process that continues the run knows which configuration that was.
//
// Measurer and recorder stay the caller's and must live longer. One thread at a time. A store
// that cannot be written is an error of Measure(), and nothing is measured.
class MarkedMeasurer : public Measurer {
 public:
  MarkedMeasurer(Measurer* measurer, dataset::Recorder* recorder)
      : measurer_(measurer), recorder_(recorder) {}

  Result<Measurement> Measure(const Trial& trial) override;
  const Subject& subject() const override { return measurer_->subject(); }
  double Now() const override { return measurer_->Now(); }
  int launches() const override { return measurer_->launches(); }

 private:
  Measurer* measurer_;
  dataset::Recorder* recorder_;
};

// Decides about what runs were measuring when their processes ended: a configuration that has never
// given a time in them, or with which a process has ended twice in a row, gets a sample in its run
// that says so (a crash), and is thereby skipped like any other that failed. The others, which
// may just have been running when the process was killed, get another chance.
//
// `contents` are all samples of these runs; the new ones are added to them and returned.
// REQUIRES: no process is measuring for these runs.
Result<std::vector<dataset::Sample>> SettleUnfinished(dataset::SampleStore* store,
                                                      const std::vector<std::string>& runs,
                                                      dataset::StoreContents* contents);

}  // namespace diapason::measure
