#include "bench/plot.h"

#include <algorithm>
#include <cmath>

#include "bench/chart.h"
#include "bench/report.h"

namespace dragoman::bench {
namespace {

// Both axes in powers of ten; y in multiply-adds per second.
constexpr double kLegend = 300;

Frame frame_of(double top_rate) {
  return {90, 50, 800, 500, 0.1, 2000, 1e9, 1.5 * top_rate};
}

// A slope for each kind of memory, up to the highest flat roof; labels lie on the slopes.
void draw_roofs(Svg& svg, const Frame& frame, const MachineLimits& limits) {
  const auto flat = [&](double rate, const std::string& name) {
    frame.line(svg, rate / limits.read.front().per_second, rate, frame.max_x, rate,
               "stroke='black' stroke-width='1.5'");
    svg.text(frame.x(4), frame.y(rate) - 6, "middle", name + " " + number(rate / 1e9, 0));  // no model is here
  };
  flat(limits.s8, "int8, exact:");
  flat(limits.f32, "float32:");
  const double top = std::max(limits.s8, limits.f32), low = frame.min_x / 10, angle = frame.angle(1);
  for (const MachineLimits::Bandwidth& b : limits.read) {
    if (b.bytes != 16 << 10 && b.bytes != 4 << 20 && b.bytes != 16 << 20 && b.bytes != 256 << 20) continue;
    frame.line(svg, low, b.per_second * low, top / b.per_second, top, "stroke='#555' stroke-dasharray='5 3'");
    const double x = 0.45;  // between attention (0.25) and one row of int8 (1)
    svg.add("<text transform='translate(%.1f %.1f) rotate(%.1f)' font-size='11' " DRAGOMAN_HALO ">%s: %s GB/s</text>\n",
            frame.x(x) - 60, frame.y(b.per_second * x) + 60 * std::tan(-angle * M_PI / 180) - 4, angle,
            b.bytes < 1 << 20 ? (std::to_string(b.bytes >> 10) + " KB").c_str()
                              : (std::to_string(b.bytes >> 20) + " MB").c_str(),
            number(b.per_second / 1e9, 0).c_str());
  }
}

struct Point {
  double x, y, share;
  std::string name;
  size_t row;
};

std::vector<Point> points_of(const std::vector<const Row*>& rows) {
  std::vector<Point> points;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const ProfilePart& part : rows[i]->profile.parts) {
      const double products = static_cast<double>(part.total.s8 + part.total.f32);
      if (products == 0) continue;
      points.push_back({products / static_cast<double>(part.total.bytes), products / part.total.seconds,
                        part.total.seconds / rows[i]->profile_seconds, part.name, i});
    }
  }
  return points;
}

// The larger a part's share of the time, the larger its circle. Small ones are numbered only if there is room.
void draw_points(Svg& svg, const Frame& frame, const std::vector<Point>& points) {
  std::vector<std::pair<double, double>> labels;
  for (const Point& p : points) {
    if (!frame.holds(p.x, p.y)) continue;
    const char* colour = kColours[p.row % std::size(kColours)];
    const double px = frame.x(p.x), py = frame.y(p.y), radius = 3 + 14 * std::sqrt(p.share);
    svg.add(
        "<circle cx='%.1f' cy='%.1f' r='%.1f' fill='%s' fill-opacity='0.35' stroke='%s'><title>%s</title></circle>\n",
        px, py, radius, colour, colour, p.name.c_str());
    const bool crowded = std::any_of(labels.begin(), labels.end(), [&](const auto& l) {
      return std::abs(l.first - px) < 150 && std::abs(l.second - py) < 12;
    });
    if (p.share < 0.02 || crowded) continue;
    labels.emplace_back(px, py);
    svg.add("<text x='%.1f' y='%.1f' font-size='11' fill='%s' " DRAGOMAN_HALO ">%s</text>\n", px + radius + 3, py + 4,
            colour, p.name.c_str());
  }
}

void draw_legend(Svg& svg, const Frame& frame, const std::vector<const Row*>& rows) {
  const double at = frame.left + frame.width + 20;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = frame.top + 14 + 20 * static_cast<double>(i);
    const Row& row = *rows[i];
    svg.add("<circle cx='%.1f' cy='%.1f' r='6' fill='%s'/>\n", at + 6, y - 4, kColours[i % std::size(kColours)]);
    svg.text(at + 18, y, "start",
             row.model->name + " " + row.model->weights + ", batch " + std::to_string(row.batch) + ": " +
                 number(100 * row.limit_fraction(), 0) + " % of limit");
  }
  const double y = frame.top + 30 + 20 * static_cast<double>(rows.size());
  svg.text(at, y, "start", "Area: share of the run's time.", "font-size='11' fill='#555'");
  svg.text(at, y + 16, "start", "Slopes: read bandwidth by working set.", "font-size='11' fill='#555'");
}

}  // namespace

std::string roofline_svg(const Results& results) {
  const MachineLimits& limits = results.limits.front();
  std::vector<const Row*> rows;
  for (const Row& row : results.rows) {
    if (row.limits == &limits) rows.push_back(&row);
  }
  const Frame frame = frame_of(std::max(limits.s8, limits.f32));
  Svg svg(frame.left + frame.width + kLegend, frame.top + frame.height + 70);
  frame.axes(svg, powers(10, frame.min_x, frame.max_x), powers(10, frame.min_y, frame.max_y, 1e9));
  frame.titles(svg, machine_name() + ": " + limits.isa + ", threads: " + std::to_string(limits.threads),
               "multiply-adds per byte of weights, K and V", "G multiply-adds per second");
  draw_roofs(svg, frame, limits);
  draw_points(svg, frame, points_of(rows));
  draw_legend(svg, frame, rows);
  return svg.finish();
}

}  // namespace dragoman::bench
