// How the cost grows, as a picture: on logarithmic axes what is linear rises by one.
#include <algorithm>
#include <cmath>

#include "bench/chart.h"
#include "bench/growth.h"
#include "bench/report.h"

namespace dragoman::bench {
namespace {

constexpr double kWidth = 460, kHeight = 460, kTop = 80;
constexpr const char* kGuide = "stroke='#888' stroke-dasharray='5 4'";

struct Dot {
  double x, y;
};

// The next of 1, 2, 5, 10, ... times a power of ten that is not below.
double round_value(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * decade >= value) return step * decade;
  }
  return 10 * decade;
}

// As high as the dots need.
Frame frame_of(double left, double min_x, double max_x, const std::vector<Dot>& dots) {
  double low = dots.front().y, high = low;
  for (const Dot& dot : dots) {
    low = std::min(low, dot.y);
    high = std::max(high, dot.y);
  }
  return {left, kTop, kWidth, kHeight, min_x, max_x, 1 / round_value(1 / low), round_value(high)};
}

std::vector<Tick> decades(const Frame& frame) {
  return powers(10, std::pow(10, std::ceil(std::log10(frame.min_y) - 1e-9)), frame.max_y);
}

void draw_line(Svg& svg, const Frame& frame, const std::vector<Dot>& dots, const char* colour, const char* style) {
  const std::string all = std::string(style) + " stroke='" + colour + "'";
  for (size_t i = 1; i < dots.size(); ++i)
    frame.line(svg, dots[i - 1].x, dots[i - 1].y, dots[i].x, dots[i].y, all.c_str());
}

void draw_series(Svg& svg, const Frame& frame, const std::vector<Dot>& dots, const char* colour) {
  draw_line(svg, frame, dots, colour, "stroke-width='2'");
  for (const Dot& dot : dots)
    svg.add("<circle cx='%.1f' cy='%.1f' r='4' fill='%s'/>\n", frame.x(dot.x), frame.y(dot.y), colour);
}

void draw_legend(Svg& svg, const Frame& frame, size_t line, const std::string& what, const char* colour) {
  const double x = frame.left + 14, y = frame.top + 22 + 18 * static_cast<double>(line);
  svg.add("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke-width='2' stroke='%s'/>\n", x, y - 4, x + 22, y - 4,
          colour);
  svg.text(x + 30, y, "start", what, DRAGOMAN_HALO);
}

// A dashed line y = c x^exponent through a dot, with its name along it where x is `at`.
void draw_guide(Svg& svg, const Frame& frame, Dot through, double exponent, double at, const char* name) {
  const auto y = [&](double x) { return through.y * std::pow(x / through.x, exponent); };
  frame.line(svg, frame.min_x, y(frame.min_x), frame.max_x, y(frame.max_x), kGuide);
  svg.add(
      "<text transform='translate(%.1f %.1f) rotate(%.1f) translate(0 -5)' text-anchor='middle' font-size='11' "
      "fill='#555' " DRAGOMAN_HALO ">%s</text>\n",
      frame.x(at), frame.y(y(at)), frame.angle(exponent), name);
}

void draw_lengths(Svg& svg, const Growth& growth) {
  std::vector<std::vector<Dot>> series, limits;
  std::vector<Dot> all;
  for (const auto& points : growth.by_length) {
    series.emplace_back();
    limits.emplace_back();
    for (const LengthCost& cost : length_costs(points, growth.limits)) {
      series.back().push_back({static_cast<double>(cost.point->source), 1e3 * cost.seconds});
      limits.back().push_back({static_cast<double>(cost.point->source), 1e3 * cost.limit});
      all.insert(all.end(), {series.back().back(), limits.back().back()});
    }
  }
  const double last = series[0].back().x;
  const Frame frame = frame_of(80, 8, last, all);
  frame.axes(svg, powers(2, 8, last), decades(frame));
  frame.titles(svg, "A sentence, batch 1", "source ids", "ms");
  const Dot corner = {last, limits[0].back().y / 2};  // below all that is drawn
  draw_guide(svg, frame, corner, 1, last / 3, "linear");
  draw_guide(svg, frame, corner, 2, last / 3, "quadratic");
  for (size_t i = 0; i < series.size(); ++i) {
    draw_line(svg, frame, limits[i], kColours[i], "stroke-width='1' stroke-dasharray='2 3'");
    draw_series(svg, frame, series[i], kColours[i]);
    draw_legend(svg, frame, i, kGrowthSeries[i], kColours[i]);
  }
  svg.text(frame.left + 14, frame.top + 22 + 18 * 3, "start", "dotted: the least this machine needs",
           "font-size='11' fill='#555' " DRAGOMAN_HALO);
}

void draw_batches(Svg& svg, const Growth& growth) {
  std::vector<Dot> dots, all;
  const std::vector<BatchCost> costs = batch_costs(growth);
  for (const BatchCost& cost : costs) {
    dots.push_back({static_cast<double>(cost.batch), 1e3 * cost.step});
    all.push_back(dots.back());
    all.push_back({dots.back().x, 1e3 * std::max(cost.memory, cost.arithmetic)});
  }
  const double last = dots.back().x;
  const Frame frame = frame_of(80 + kWidth + 110, 1, last, all);
  frame.axes(svg, powers(2, 1, last), decades(frame));
  frame.titles(svg, "One step of the decoder", "sentences side by side", "ms");
  draw_guide(svg, frame, {1, 1e3 * costs[0].memory}, 0, last / 4, "the time to read the weights");
  draw_guide(svg, frame, {1, 1e3 * costs[0].arithmetic}, 1, last / 3, "the time to multiply");
  draw_series(svg, frame, dots, kColours[1]);
  draw_legend(svg, frame, 0, "measured", kColours[1]);
}

}  // namespace

std::string growth_svg(const Growth& growth) {
  Svg svg(80 + 2 * kWidth + 110 + 30, kTop + kHeight + 70);
  svg.text(80, 28, "start",
           growth.model + " " + growth.weights + " on " + machine_name() + ": " + growth.limits.isa +
               ", threads: " + std::to_string(growth.limits.threads),
           "font-size='16'");
  draw_lengths(svg, growth);
  draw_batches(svg, growth);
  return svg.finish();
}

}  // namespace dragoman::bench
