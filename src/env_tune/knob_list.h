#pragma once

#include <string>
#include <vector>

#include "base/environment.h"
#include "env_tune/binding.h"
#include "env_tune/experiment.h"
#include "knobs/catalogue.h"

namespace diapason::env_tune {

// "NAME=V1,V2,..." -> a candidate for each value. Values with commas have to be put into a file.
Result<std::vector<KnobValue>> ParseKnob(const std::string& text);

// A TOML file of [[knob]] tables with `name`, `values` (a list of texts or numbers) and, if wanted,
// `why`. `file` is for errors.
Result<std::vector<KnobValue>> ParseKnobFile(const std::string& text, const std::string& file);

// The built-in list for a library and what binds, most promising first: only variables that the
// library reads at this version, without values that hold anyway. `left_out` says what is not in it
// and why.
std::vector<KnobValue> BuiltInKnobs(Library library, int version, Binds binds,
                                    const knobs::Catalogue& catalogue,
                                    std::vector<std::string>* left_out);

// Takes out candidates that the environment has already, and values that were named twice.
std::vector<KnobValue> WithoutPresent(std::vector<KnobValue> candidates,
                                      const Environment& environment,
                                      std::vector<std::string>* left_out);

}  // namespace diapason::env_tune
