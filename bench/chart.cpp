#include "bench/chart.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace dragoman::bench {

Svg::Svg(double width, double height) {
  add("<svg xmlns='http://www.w3.org/2000/svg' width='%g' height='%g' font-family='sans-serif' font-size='13'>\n",
      width, height);
  add("<rect width='100%%' height='100%%' fill='white'/>\n");
}

void Svg::add(const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  svg_ += text;
}

void Svg::text(double x, double y, const char* anchor, const std::string& what, const char* more) {
  add("<text x='%.1f' y='%.1f' text-anchor='%s' %s>%s</text>\n", x, y, anchor, more, what.c_str());
}

double Frame::x(double value) const {
  return left + width * std::log(value / min_x) / std::log(max_x / min_x);
}

double Frame::y(double value) const {
  return top + height * (1 - std::log(value / min_y) / std::log(max_y / min_y));
}

bool Frame::holds(double at_x, double at_y) const {
  return at_x >= min_x && at_x <= max_x && at_y >= min_y && at_y <= max_y;
}

double Frame::angle(double exponent) const {
  return -180 / M_PI * std::atan2(exponent * height / std::log(max_y / min_y), width / std::log(max_x / min_x));
}

void Frame::axes(Svg& svg, const std::vector<Tick>& xs, const std::vector<Tick>& ys) const {
  svg.add("<clipPath id='frame%g'><rect x='%g' y='%g' width='%g' height='%g'/></clipPath>\n", left, left, top, width,
          height);
  for (const Tick& tick : xs) {
    line(svg, tick.at, min_y, tick.at, max_y, "stroke='#e5e5e5'");
    svg.text(x(tick.at), top + height + 20, "middle", tick.label);
  }
  for (const Tick& tick : ys) {
    line(svg, min_x, tick.at, max_x, tick.at, "stroke='#e5e5e5'");
    svg.text(left - 8, y(tick.at) + 4, "end", tick.label);
  }
  svg.add("<rect x='%g' y='%g' width='%g' height='%g' fill='none' stroke='black'/>\n", left, top, width, height);
}

void Frame::titles(Svg& svg, const std::string& title, const std::string& under, const std::string& beside) const {
  svg.text(left + width / 2, top + height + 48, "middle", under);
  svg.add("<text transform='translate(%g %g) rotate(-90)' text-anchor='middle'>%s</text>\n", left - 62,
          top + height / 2, beside.c_str());
  svg.text(left, top - 20, "start", title, "font-size='16'");
}

void Frame::line(Svg& svg, double x1, double y1, double x2, double y2, const char* style) const {
  svg.add("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s clip-path='url(#frame%g)'/>\n", x(x1), y(y1), x(x2), y(y2),
          style, left);
}

std::vector<Tick> powers(double base, double low, double high, double unit) {
  std::vector<Tick> ticks;
  for (double v = low; v <= high * 1.01; v *= base) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", v / unit);
    ticks.push_back({v, text});
  }
  return ticks;
}

}  // namespace dragoman::bench
