#include "bench/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "bench/report.h"

namespace dragoman::bench {
namespace {

// Both axes in powers of ten; y in multiply-adds per second.
constexpr double kLeft = 90, kTop = 50, kWidth = 800, kHeight = 500, kLegend = 300;
constexpr double kMinX = 0.1, kMaxX = 2000, kMinY = 1e9;
constexpr const char* kColours[] = {"#c0392b", "#2874a6", "#1e8449", "#7d3c98",
                                    "#b9770e", "#117864", "#515a5a", "#d35400"};

// Letters stay readable where they cross a line.
#define DRAGOMAN_HALO "paint-order='stroke' stroke='white' stroke-width='3'"

class Chart {
 public:
  explicit Chart(double top) : max_y_(1.5 * top) {
    add("<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' font-family='sans-serif' font-size='13'>\n",
        kLeft + kWidth + kLegend, kTop + kHeight + 70);
    add("<rect width='100%%' height='100%%' fill='white'/>\n");
    add("<clipPath id='frame'><rect x='%g' y='%g' width='%g' height='%g'/></clipPath>\n", kLeft, kTop, kWidth, kHeight);
  }

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    svg_ += text;
  }

  double x(double value) const { return kLeft + kWidth * std::log(value / kMinX) / std::log(kMaxX / kMinX); }
  double y(double value) const { return kTop + kHeight * (1 - std::log(value / kMinY) / std::log(max_y_ / kMinY)); }
  double max_y() const { return max_y_; }
  bool holds(double at_x, double at_y) const {
    return at_x >= kMinX && at_x <= kMaxX && at_y >= kMinY && at_y <= max_y_;
  }

  void line(double x1, double y1, double x2, double y2, const char* style) {
    add("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s clip-path='url(#frame)'/>\n", x(x1), y(y1), x(x2), y(y2),
        style);
  }
  void text(double px, double py, const char* anchor, const std::string& what, const char* more = "") {
    add("<text x='%.1f' y='%.1f' text-anchor='%s' %s>%s</text>\n", px, py, anchor, more, what.c_str());
  }
  std::string finish() { return svg_ + "</svg>\n"; }

 private:
  double max_y_;
  std::string svg_;
};

std::string power_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void draw_axes(Chart& chart, const std::string& title) {
  for (double v = kMinX; v <= kMaxX; v *= 10) {
    chart.line(v, kMinY, v, chart.max_y(), "stroke='#e5e5e5'");
    chart.text(chart.x(v), kTop + kHeight + 20, "middle", power_text(v));
  }
  for (double v = kMinY; v <= chart.max_y() * 1.01; v *= 10) {
    chart.line(kMinX, v, kMaxX, v, "stroke='#e5e5e5'");
    chart.text(kLeft - 8, chart.y(v) + 4, "end", power_text(v / 1e9));
  }
  chart.add("<rect x='%g' y='%g' width='%g' height='%g' fill='none' stroke='black'/>\n", kLeft, kTop, kWidth, kHeight);
  chart.text(kLeft + kWidth / 2, kTop + kHeight + 48, "middle", "multiply-adds per byte of weights, K and V");
  chart.add("<text transform='translate(28 %g) rotate(-90)' text-anchor='middle'>G multiply-adds per second</text>\n",
            kTop + kHeight / 2);
  chart.text(kLeft, kTop - 20, "start", title, "font-size='16'");
}

// A slope for each kind of memory, up to the highest flat roof; labels lie on the slopes.
void draw_roofs(Chart& chart, const MachineLimits& limits) {
  const auto flat = [&](double rate, const std::string& name) {
    chart.line(rate / limits.read.front().per_second, rate, kMaxX, rate, "stroke='black' stroke-width='1.5'");
    chart.text(chart.x(4), chart.y(rate) - 6, "middle", name + " " + number(rate / 1e9, 0));  // no model is here
  };
  flat(limits.s8, "int8, exact:");
  flat(limits.f32, "float32:");
  const double top = std::max(limits.s8, limits.f32);
  const double angle =
      -180 / M_PI * std::atan2(kHeight / std::log(chart.max_y() / kMinY), kWidth / std::log(kMaxX / kMinX));
  for (const MachineLimits::Bandwidth& b : limits.read) {
    if (b.bytes != 16 << 10 && b.bytes != 4 << 20 && b.bytes != 16 << 20 && b.bytes != 256 << 20) continue;
    chart.line(kMinX / 10, b.per_second * kMinX / 10, top / b.per_second, top, "stroke='#555' stroke-dasharray='5 3'");
    const double x = 0.45;  // between attention (0.25) and one row of int8 (1)
    chart.add("<text transform='translate(%.1f %.1f) rotate(%.1f)' font-size='11' " DRAGOMAN_HALO
              ">%s: %s GB/s</text>\n",
              chart.x(x) - 60, chart.y(b.per_second * x) + 60 * std::tan(-angle * M_PI / 180) - 4, angle,
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
void draw_points(Chart& chart, const std::vector<Point>& points) {
  std::vector<std::pair<double, double>> labels;
  for (const Point& p : points) {
    if (!chart.holds(p.x, p.y)) continue;
    const char* colour = kColours[p.row % std::size(kColours)];
    const double px = chart.x(p.x), py = chart.y(p.y), radius = 3 + 14 * std::sqrt(p.share);
    chart.add(
        "<circle cx='%.1f' cy='%.1f' r='%.1f' fill='%s' fill-opacity='0.35' stroke='%s'><title>%s</title></circle>\n",
        px, py, radius, colour, colour, p.name.c_str());
    const bool crowded = std::any_of(labels.begin(), labels.end(), [&](const auto& l) {
      return std::abs(l.first - px) < 150 && std::abs(l.second - py) < 12;
    });
    if (p.share < 0.02 || crowded) continue;
    labels.emplace_back(px, py);
    chart.add("<text x='%.1f' y='%.1f' font-size='11' fill='%s' " DRAGOMAN_HALO ">%s</text>\n", px + radius + 3, py + 4,
              colour, p.name.c_str());
  }
}

void draw_legend(Chart& chart, const std::vector<const Row*>& rows) {
  const double at = kLeft + kWidth + 20;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kTop + 14 + 20 * static_cast<double>(i);
    const Row& row = *rows[i];
    chart.add("<circle cx='%.1f' cy='%.1f' r='6' fill='%s'/>\n", at + 6, y - 4, kColours[i % std::size(kColours)]);
    chart.text(at + 18, y, "start",
               row.model->name + " " + row.model->weights + ", batch " + std::to_string(row.batch) + ": " +
                   number(100 * row.limit_fraction(), 0) + " % of limit");
  }
  const double y = kTop + 30 + 20 * static_cast<double>(rows.size());
  chart.text(at, y, "start", "Area: share of the run's time.", "font-size='11' fill='#555'");
  chart.text(at, y + 16, "start", "Slopes: read bandwidth by working set.", "font-size='11' fill='#555'");
}

}  // namespace

std::string roofline_svg(const Results& results) {
  const MachineLimits& limits = results.limits.front();
  std::vector<const Row*> rows;
  for (const Row& row : results.rows) {
    if (row.limits == &limits) rows.push_back(&row);
  }
  Chart chart(std::max(limits.s8, limits.f32));
  draw_axes(chart, machine_name() + ": " + limits.isa + ", threads: " + std::to_string(limits.threads));
  draw_roofs(chart, limits);
  draw_points(chart, points_of(rows));
  draw_legend(chart, rows);
  return chart.finish();
}

}  // namespace dragoman::bench
