// A curve of values over steps, of any length in fixed memory: as a line of blocks for a terminal
// and as an SVG picture.
#ifndef PRESK_CLI_CURVE_H
#define PRESK_CLI_CURVE_H

#include "base/text.h"

enum { CURVE_POINTS = 1024 };

// Point i is the mean of values per·i … per·(i + 1) − 1; when all places are taken, neighbours are
// joined and `per` doubles.
typedef struct CliCurve {
    uint64_t first; // the step of the first value
    uint64_t per, values;
    double sum[CURVE_POINTS];
    uint32_t count[CURVE_POINTS]; // finite values in the sum
} CliCurve;

void cli_curve_begin(CliCurve *curve, uint64_t first);
void cli_curve_add(CliCurve *curve, double value);
// "▇▆▄▃▂▂▁▁": at most `columns` characters between the smallest and the largest mean; empty where
// nothing is finite.
Str cli_curve_text(const CliCurve *curve, uint32_t columns, Arena *arena);
// An SVG document with axes. `title` is put in as it is.
Str cli_curve_svg(const CliCurve *curve, const char *title, Arena *arena);

#endif
