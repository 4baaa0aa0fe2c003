#pragma once

#include "dataset/sqlite.h"
#include "dataset/store.h"

namespace diapason::dataset {

// The prepared statements of a store opened for writing.
struct SampleStore::Statements {
  Statement find_machine;
  Statement add_machine;
  Statement find_run;
  Statement add_run;
  Statement end_run;
  Statement find_point;
  Statement add_point;
  Statement add_sample;
  Statement end_trying;
  Statement begin_trying;
  Statement count_deaths;
  Statement forget_trying;
};

}  // namespace diapason::dataset
