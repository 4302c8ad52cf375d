// What the tests of bad input share: how a refusal must look, a run to damage, and whether anything of it was lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/cli/command.hpp"

namespace nsp::test {

// The documented code; one error on one line, printed once by all ranks together, that says every text of `cause` and `cure`.
void expect_refusal(const Said& said, int code, const std::vector<std::string>& cause, const std::string& cure);

// "--key 'value' ..." of a model that trains a step in milliseconds, over its usual values; an empty value leaves the key out.
using Keys = std::map<std::string, std::string>;
std::string tiny(const Keys& changed);

// A folder of tokens that prepare made of text (bytes, vocabulary 257); made once, for all tests of the program.
const std::string& prepared_data();
// A copy of `prepared_data`, to damage.
std::string copy_of_data(const TempFolder& folder);
// A copy of a run of 4 steps with checkpoints at 2 and 4, trained once on prepared_data.
std::string copy_of_run(const TempFolder& folder);

// Path to content of what a run must not lose: its checkpoints and its log.
using Written = std::map<std::string, std::string>;
Written written(const std::string& run_dir);
// Nothing changed, and every checksum still holds.
void expect_nothing_lost(const std::string& run_dir, const Written& before);

// The only shard of the checkpoint after `step` in a copy_of_run, and its manifest.
std::string shard_of(const std::string& run_dir, int step);
std::string manifest_of(const std::string& run_dir, int step);
void cut(const std::string& path, int bytes);              // takes bytes off the end of a file
void flip(const std::string& path, std::size_t position);  // changes one bit

// A file of this repository's reference data (tests/golden/llmc_tiny).
std::string golden(const std::string& name);

}  // namespace nsp::test
