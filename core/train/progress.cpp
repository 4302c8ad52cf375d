#include "core/train/progress.hpp"

#include <algorithm>
#include <cstdio>

namespace nsp {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[96];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string bar(double done, int cells) {
  cells = std::max(0, cells);
  const int filled = std::clamp(static_cast<int>(done * cells), 0, cells);
  std::string text(1, '[');
  text.append(static_cast<std::size_t>(filled), '#').append(static_cast<std::size_t>(cells - filled), '.').append(1, ']');
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<long long>(std::clamp(seconds, 0.0, 3e9));
  std::string text = s >= 86400 ? formatted("%lldd ", s / 86400) : "";
  return text + formatted(s >= 86400 ? "%02lld:%02lld:%02lld" : "%lld:%02lld:%02lld", s / 3600 % 24, s / 60 % 60, s % 60);
}

std::string fitted_line(std::vector<LinePart> parts, double done, int columns) {
  constexpr int few = 10, many = 40;  // cells of a bar
  for (LinePart& part : parts)
    if (part.bar) part.text = bar(done, few);
  const auto width = [&] {
    std::size_t sum = 0;
    for (const LinePart& part : parts) sum += part.text.size() + 2;
    return static_cast<int>(sum) - 2;
  };
  while (parts.size() > 1 && width() > columns)
    parts.erase(std::max_element(parts.begin(), parts.end(), [](const LinePart& a, const LinePart& b) { return a.rank < b.rank; }));
  for (LinePart& part : parts)
    if (part.bar) part.text = bar(done, std::min(many, few + columns - width()));
  std::string text;
  for (const LinePart& part : parts) text += (text.empty() ? "" : "  ") + part.text;
  return text.substr(0, static_cast<std::size_t>(std::max(0, columns)));
}

std::string progress_text(const StepRecord& r, int64_t steps, double left, int columns) {
  const double done = steps > 0 ? static_cast<double>(r.step) / static_cast<double>(steps) : 1.0;
  return fitted_line({{formatted("step %lld/%lld", static_cast<long long>(r.step), static_cast<long long>(steps)), 0},
                      {"", 4, true},
                      {formatted("%3d%%", static_cast<int>(100.0 * done)), 3},
                      {formatted("loss %.4f", r.loss), 1},
                      {formatted("norm %.3f", r.grad_norm), 6},
                      {formatted("%.0f tok/s", r.tokens_per_second()), 5},
                      {formatted("peak %.1f%%", 100.0 * r.peak_share), 7},
                      {"left " + duration_text(left), 2}},
                     done, columns);
}

void Progress::update(const StepRecord& record, double left) {
  const auto now = std::chrono::steady_clock::now();
  if (record.step != steps_ && now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  // The last column stays free: terminals differ in what they do after writing it.
  line_.show(progress_text(record, steps_, left, line_.width() - 1));
}

}  // namespace nsp
