// desloc at work: when it averages what.
#include <gtest/gtest.h>

#include "tests/policies/against_serial.hpp"

namespace nsp::test {
namespace {

using Given = std::map<std::string, std::string>;

const Given periods{{"kx", "2"}, {"ku", "4"}, {"kv", "6"}};
const std::vector<std::string> due{"", "", "x", "", "xu", "", "xv", "", "xu"};

TEST(Desloc, EqualsTheSerialProgramBitForBit) {
  run_against_serial(Kind::cpu, 2, periods, {0.5, 0.5}, due);
  run_against_serial(Kind::cpu, 3, periods, {0.5, 0.25, 0.25}, due);
  run_against_serial(Kind::cpu, 4, periods, {0.1, 0.2, 0.3, 0.4}, due);
}

TEST(Desloc, EqualsTheSerialProgramOnADeviceTheHostCannotTouch) {
  run_against_serial(Kind::fake, 3, periods, {0.5, 0.25, 0.25}, due);
}

TEST(Desloc, InfiniteMomentPeriodsAverageParametersOnly) {
  run_against_serial(Kind::cpu, 2, {{"kx", "3"}, {"ku", "inf"}, {"kv", "inf"}}, {0.75, 0.25}, {"", "", "", "x", "", "", "x"});
}

TEST(Desloc, ParametersThatAreNeverAveragedStayApart) {
  run_against_serial(Kind::cpu, 2, {{"kx", "inf"}, {"ku", "inf"}, {"kv", "inf"}}, {0.5, 0.5}, {"", "", "", ""});
}

TEST(Desloc, WarmUpAveragesEverything) {
  run_against_serial(Kind::cpu, 2, {{"kx", "4"}, {"ku", "8"}, {"kv", "inf"}, {"warmup_steps", "3"}}, {0.5, 0.5},
                     {"", "xuv", "xuv", "", "x", ""});
}

TEST(Desloc, OneReplicaDoesNothing) {
  run_against_serial(Kind::cpu, 1, {{"kx", "1"}, {"ku", "1"}, {"kv", "1"}}, {1.0}, {"", "", "", ""});
}

}  // namespace
}  // namespace nsp::test
