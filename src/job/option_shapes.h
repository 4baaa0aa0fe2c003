#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace diapason::job {

// How the options of a program are written: enough to find the word where they end. Names have no
// dashes; lists are separated by blanks.
struct OptionShape {
  std::string_view one;         // take the next word as their value
  std::string_view two = {};    // take the next two
  std::string_view flags = {};  // take none, where every other one takes a value (see below)
  // Options of one letter, as getopt reads them: -n4, -lu. These take a value.
  std::string_view letters = {};
  bool others_take_one = false;  // long options that are in no list take the next word
  bool clustered = false;        // one dash: letters, as getopt; otherwise a name, as mpirun
  int arguments = 0;             // words after the options that are not the command
};

// One option with its values, as read.
struct ReadOption {
  std::string name;  // without dashes
  std::vector<std::string> values;
  size_t word = 0;
  bool joined = false;  // --name=value: the value is in the same word
};

struct ReadWords {
  std::vector<ReadOption> options;
  std::vector<size_t> arguments;
  size_t end = 0;  // the first word that is none of these
};

// Reads the words from `begin` on.
ReadWords ReadOptionWords(const std::vector<std::string>& words, size_t begin,
                          const OptionShape& shape);

// Known programs. nullptr for others.
const OptionShape* PrefixShape(std::string_view name);  // nice, timeout, numactl, ...
const OptionShape& OpenMpiShape();
const OptionShape& HydraShape();
const OptionShape& SrunShape();
const OptionShape& TorchrunShape();
const OptionShape& DeepspeedShape();
const OptionShape& AccelerateShape();
const OptionShape& DiapasonLaunchShape();
const OptionShape& ContainerShape();

}  // namespace diapason::job
