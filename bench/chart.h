// An SVG image with frames of logarithmic axes: what the pictures of the benchmark have in common.
#pragma once

#include <string>
#include <vector>

namespace dragoman::bench {

inline constexpr const char* kColours[] = {"#c0392b", "#2874a6", "#1e8449", "#7d3c98",
                                           "#b9770e", "#117864", "#515a5a", "#d35400"};

// Letters stay readable where they cross a line.
#define DRAGOMAN_HALO "paint-order='stroke' stroke='white' stroke-width='3'"

class Svg {
 public:
  Svg(double width, double height);
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...);
  // anchor: start, middle or end; more: further attributes.
  void text(double x, double y, const char* anchor, const std::string& what, const char* more = "");
  std::string finish() const { return svg_ + "</svg>\n"; }

 private:
  std::string svg_;
};

struct Tick {
  double at;
  std::string label;
};

// A rectangle of the image, in pixels, and the values at its edges.
struct Frame {
  double left, top, width, height;
  double min_x, max_x, min_y, max_y;

  double x(double value) const;
  double y(double value) const;
  bool holds(double at_x, double at_y) const;
  double angle(double exponent) const;  // degrees by which x^exponent rises here, as SVG turns text

  void axes(Svg& svg, const std::vector<Tick>& xs, const std::vector<Tick>& ys) const;
  void titles(Svg& svg, const std::string& title, const std::string& under, const std::string& beside) const;
  // Between two points of the axes; what lies outside is cut off. After axes().
  void line(Svg& svg, double x1, double y1, double x2, double y2, const char* style) const;
};

std::vector<Tick> powers(double base, double low, double high, double unit = 1);  // labels in `unit`s

}  // namespace dragoman::bench
