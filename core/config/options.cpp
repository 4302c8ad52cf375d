#include "nsp/options.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "core/config/origin.hpp"
#include "core/config/suggest.hpp"
#include "nsp/error.hpp"

namespace nsp {
namespace {

constexpr std::string_view kAuto = "auto|";
constexpr std::string_view kChoice = "choice:";

[[noreturn]] void reject(const std::string& text, const std::string& what, const std::string& example) {
  throw Error(ErrorKind::usage, "'" + text + "' is not " + what + ". Write it like " + example + ".");
}

// The whole text as a finite number; false otherwise. Independent of the locale.
bool read_number(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(*value);
}

bool read_integer(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  std::size_t from = kChoice.size();
  for (;;) {
    const std::size_t to = type.find('|', from);
    choices.push_back(type.substr(from, to == std::string::npos ? to : to - from));
    if (to == std::string::npos) return choices;
    from = to + 1;
  }
}

void check_choice(const std::string& type, const std::string& text) {
  const std::vector<std::string> choices = choices_of(type);
  for (const std::string& choice : choices) {
    if (choice == text) return;
  }
  const std::string hint = did_you_mean(text, choices);
  throw Error(ErrorKind::usage, "'" + text + "' is none of the allowed words: " + comma_list(choices) + "." +
                                    (hint.empty() ? " Write it like " + choices[0] + "." : " " + hint));
}

// The type without a leading "auto|".
std::string plain_type(const std::string& type) {
  return type.compare(0, kAuto.size(), kAuto) == 0 ? type.substr(kAuto.size()) : type;
}

}  // namespace

bool origin_is_given(const std::string& origin) {
  return origin != kOriginDefault && origin != kOriginStored && origin.compare(0, 7, "preset ") != 0 &&
         origin.compare(0, 7, "family ") != 0;
}

namespace parse {

int64_t integer(const std::string& text) {
  int64_t value = 0;
  if (!read_integer(text, &value)) reject(text, "a whole number", "32");
  return value;
}

int64_t size(const std::string& text) {
  std::string_view digits = text;
  int64_t unit = 1;
  if (!digits.empty()) {
    switch (digits.back()) {
      case 'k':
      case 'K':
        unit = 1000;
        break;
      case 'M':
        unit = 1000000;
        break;
      case 'G':
        unit = 1000000000;
        break;
      default:
        break;
    }
  }
  if (unit != 1) digits.remove_suffix(1);
  int64_t whole = 0;
  if (read_integer(digits, &whole) && whole >= 0 && whole <= std::numeric_limits<int64_t>::max() / unit) return whole * unit;
  double part = 0;
  // "1.5M" is exact; a value that is not whole ("1.5") is a mistake.
  if (read_number(digits, &part) && part >= 0 && part * static_cast<double>(unit) < 9.0e15) {
    const double value = part * static_cast<double>(unit);
    if (std::abs(value - std::round(value)) < 1e-6) return std::llround(value);
  }
  reject(text, "a size (a whole number >= 0, with k, M or G for thousands, millions, billions)", "64, 4k or 80G");
}

double number(const std::string& text) {
  double value = 0;
  if (!read_number(text, &value)) reject(text, "a number", "0.1 or 3e-4");
  return value;
}

bool flag(const std::string& text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  reject(text, "a yes-or-no value", "true or false");
}

double seconds(const std::string& text) {
  std::string_view digits = text;
  double unit = 1;
  if (!digits.empty() && (digits.back() == 's' || digits.back() == 'm' || digits.back() == 'h')) {
    unit = digits.back() == 's' ? 1 : digits.back() == 'm' ? 60 : 3600;
    digits.remove_suffix(1);
  }
  double value = 0;
  if (!read_number(digits, &value) || value < 0) reject(text, "a time (a number >= 0, with s, m or h)", "600s, 10m or 2h");
  return value * unit;
}

int64_t period(const std::string& text) {
  if (text == "inf") return never;
  int64_t value = 0;
  if (!read_integer(text, &value) || value < 1) reject(text, "a period (a whole number of steps >= 1, or inf for never)", "32 or inf");
  return value;
}

void check(const std::string& type, const std::string& text) {
  if (type.compare(0, kAuto.size(), kAuto) == 0) {
    if (text == "auto") return;
    try {
      check(plain_type(type), text);
    } catch (const Error& e) {
      throw Error(ErrorKind::usage, std::string(e.what()) + " The word auto is allowed too.");
    }
  } else if (type == "int") {
    integer(text);
  } else if (type == "size") {
    size(text);
  } else if (type == "float") {
    number(text);
  } else if (type == "bool" || type == "switch") {
    flag(text);
  } else if (type == "time") {
    seconds(text);
  } else if (type == "period") {
    period(text);
  } else if (type.compare(0, kChoice.size(), kChoice) == 0) {
    check_choice(type, text);
  } else if (type != "string") {
    throw Error(ErrorKind::usage, "'" + type +
                                      "' is not a type of option. The types are int, size, float, bool, string, time, period, "
                                      "choice:a|b|c, and auto|<one of these>. Correct the option row.");
  }
}

}  // namespace parse

const Options::Value& Options::at(const std::string& name) const {
  const auto found = values_.find(name);
  NSP_REQUIRE(found != values_.end(), "option " + section_ + "." + name + " is read but was never declared");
  return found->second;
}

int64_t Options::integer(const std::string& name) const {
  const Value& value = at(name);
  const std::string type = plain_type(value.type);
  NSP_REQUIRE(type == "int" || type == "size", "option " + section_ + "." + name + " has type " + value.type);
  return type == "size" ? parse::size(value.text) : parse::integer(value.text);
}

double Options::number(const std::string& name) const {
  const Value& value = at(name);
  NSP_REQUIRE(plain_type(value.type) == "float", "option " + section_ + "." + name + " has type " + value.type);
  return parse::number(value.text);
}

bool Options::flag(const std::string& name) const {
  const Value& value = at(name);
  NSP_REQUIRE(plain_type(value.type) == "bool" || value.type == "switch", "option " + section_ + "." + name + " has type " + value.type);
  return parse::flag(value.text);
}

std::string Options::text(const std::string& name) const {
  return at(name).text;
}

double Options::seconds(const std::string& name) const {
  const Value& value = at(name);
  NSP_REQUIRE(plain_type(value.type) == "time", "option " + section_ + "." + name + " has type " + value.type);
  return parse::seconds(value.text);
}

int64_t Options::period(const std::string& name) const {
  const Value& value = at(name);
  NSP_REQUIRE(plain_type(value.type) == "period", "option " + section_ + "." + name + " has type " + value.type);
  return parse::period(value.text);
}

bool Options::given(const std::string& name) const {
  return origin_is_given(at(name).origin);
}

}  // namespace nsp
