#include "cli/curve.h"

#include <math.h>

void cli_curve_begin(CliCurve *curve, uint64_t first) {
    *curve = (CliCurve){.first = first, .per = 1};
}

static void join_neighbours(CliCurve *curve) {
    for (uint32_t i = 0; i < CURVE_POINTS / 2; i++) {
        curve->sum[i] = curve->sum[2 * i] + curve->sum[2 * i + 1];
        curve->count[i] = curve->count[2 * i] + curve->count[2 * i + 1];
    }
    memset(curve->sum + CURVE_POINTS / 2, 0, sizeof curve->sum / 2);
    memset(curve->count + CURVE_POINTS / 2, 0, sizeof curve->count / 2);
    curve->per *= 2;
}

void cli_curve_add(CliCurve *curve, double value) {
    if (curve->values == curve->per * CURVE_POINTS)
        join_neighbours(curve);
    uint64_t point = curve->values++ / curve->per;
    if (!isfinite(value))
        return;
    curve->sum[point] += value;
    curve->count[point]++;
}

static uint32_t points(const CliCurve *curve) {
    return (uint32_t)((curve->values + curve->per - 1) / curve->per);
}

// The mean of points `from` … `to` − 1; NaN: no value there is finite.
static double mean(const CliCurve *curve, uint32_t from, uint32_t to) {
    double sum = 0, count = 0;
    for (uint32_t i = from; i < to; i++) {
        sum += curve->sum[i];
        count += curve->count[i];
    }
    return count > 0 ? sum / count : NAN;
}

static bool range(const double *value, uint32_t count, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        *low = fmin(*low, value[i]);
        *high = fmax(*high, value[i]);
    }
    return *low <= *high;
}

Str cli_curve_text(const CliCurve *curve, uint32_t columns, Arena *arena) {
    static const char *const block[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint32_t count = points(curve), width = MIN(columns, count);
    double *value = arena_array(arena, double, width + 1), low, high;
    for (uint32_t i = 0; i < width; i++)
        value[i] = mean(curve, (uint32_t)((uint64_t)count * i / width),
                        (uint32_t)((uint64_t)count * (i + 1) / width));
    StrBuf text = {.arena = arena};
    bool any = range(value, width, &low, &high);
    for (uint32_t i = 0; any && i < width; i++) {
        double part = high > low ? (value[i] - low) / (high - low) : 0;
        buf_text(&text, isnan(value[i]) ? " " : block[MIN((uint32_t)(part * 8), 7u)]);
    }
    return buf_str(&text);
}

// ---- the picture ------------------------------------------------------------------------------

enum { LEFT = 60, TOP = 36, WIDTH = 640, HEIGHT = 300, RIGHT = 20, BOTTOM = 40 };

// A step of 1, 2 or 5 times a power of ten that divides the range into at most six parts.
static double tick_of(double width) {
    double power = pow(10, floor(log10(width / 6)));
    static const double factor[] = {1, 2, 5, 10};
    for (uint32_t i = 0; i < COUNT_OF(factor); i++)
        if (width / (factor[i] * power) <= 6)
            return factor[i] * power;
    return 10 * power;
}

static void draw_grid(StrBuf *svg, double low, double high, double first, double last) {
    for (double tick = tick_of(high - low), at = ceil(low / tick) * tick; at <= high; at += tick) {
        double y = TOP + HEIGHT * (high - at) / (high - low);
        buf_format(svg,
                   "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n"
                   "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n",
                   LEFT, y, LEFT + WIDTH, y, LEFT - 8, y + 4, fabs(at) < tick / 2 ? 0 : at);
    }
    for (double tick = tick_of(last - first), at = ceil(first / tick) * tick; at <= last;
         at += tick)
        buf_format(svg, "<text x='%.1f' y='%d' text-anchor='middle'>%g</text>\n",
                   LEFT + WIDTH * (at - first) / (last - first), TOP + HEIGHT + 18, at);
}

Str cli_curve_svg(const CliCurve *curve, const char *title, Arena *arena) {
    uint32_t count = points(curve);
    double *value = arena_array(arena, double, count + 1), low, high;
    for (uint32_t i = 0; i < count; i++)
        value[i] = mean(curve, i, i + 1);
    if (!range(value, count, &low, &high))
        low = high = 0;
    double margin = high > low ? (high - low) * 0.05 : 0.5;
    low -= margin;
    high += margin;
    double first = (double)curve->first, last = first + (double)MAX(curve->values, (uint64_t)2) - 1;
    StrBuf svg = {.arena = arena};
    buf_format(
        &svg,
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif'"
        " font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
        "<text x='%d' y='20' font-size='14'>%s</text>\n",
        LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM, LEFT, title);
    draw_grid(&svg, low, high, first, last);
    buf_text(&svg, "<polyline fill='none' stroke='#1f6feb' stroke-width='1.5' points='");
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(value[i]))
            continue;
        // A point stands in the middle of its steps.
        double end = fmin((double)curve->values, (double)(i + 1) * (double)curve->per);
        double at = ((double)i * (double)curve->per + end - 1) / 2;
        buf_format(&svg, "%.1f,%.1f ", LEFT + WIDTH * at / (last - first),
                   TOP + HEIGHT * (high - value[i]) / (high - low));
    }
    buf_format(&svg, "'/>\n<text x='%d' y='%d' text-anchor='middle'>step</text>\n</svg>\n",
               LEFT + WIDTH / 2, TOP + HEIGHT + 34);
    return buf_str(&svg);
}
