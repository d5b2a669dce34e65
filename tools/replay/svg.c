// svg.c: every device's load over time, one band for each policy: rows are devices, columns are
// time, colour is the load over the mean. Many steps share a column; it shows their largest.
#include <string.h>

#include "files/files.h"
#include "tools/replay/replay.h"

enum { WIDTH = 960, LEFT = 90, TOP = 40, BAND_GAP = 46, COLUMNS_MAX = 240, HEIGHT_MAX = 160 };

// White at the mean and below, through yellow, to dark red at four times the mean.
static void colour(double load, char text[8]) {
    static const double stops[][4] = {{0, 222, 235, 247}, {1, 255, 255, 255}, {1.25, 255, 237, 160},
                                      {2, 240, 59, 32},   {4, 103, 0, 13},    {1e9, 103, 0, 13}};
    load = (int)(20 * load + 0.5) / 20.0; // Finer shades cannot be told apart, but cost bytes.
    int i = 1;
    while (load > stops[i][0]) i++;
    const double part = (load - stops[i - 1][0]) / (stops[i][0] - stops[i - 1][0]);
    int rgb[3];
    for (int c = 0; c < 3; c++) {
        rgb[c] = (int)(stops[i - 1][c + 1] + part * (stops[i][c + 1] - stops[i - 1][c + 1]) + 0.5);
    }
    snprintf(text, 8, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

static double cell(const struct series *series, int32_t devices, int32_t device, int64_t from,
                   int64_t to) {
    double most = 0;
    for (int64_t t = from; t < to; t++) {
        const double load = series->picture[t * devices + device];
        if (load > most) most = load;
    }
    return most;
}

// One device: neighbouring columns of one colour make one rectangle.
static void row(FILE *out, const struct series *series, int32_t devices, int32_t device, double top,
                double height) {
    const int64_t steps = series->picture_count;
    const int64_t columns = steps < COLUMNS_MAX ? steps : COLUMNS_MAX;
    const double width = (double)(WIDTH - LEFT - 20) / (double)(columns ? columns : 1);
    char fill[8] = "", next[8];
    int64_t begin = 0;
    for (int64_t c = 0; c <= columns; c++) {
        if (c < columns) {
            const double load =
                cell(series, devices, device, c * steps / columns, (c + 1) * steps / columns);
            colour(load, next);
            if (c == 0) memcpy(fill, next, sizeof fill);
            if (strcmp(fill, next) == 0) continue;
        }
        fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n",
                LEFT + (double)begin * width, top, (double)(c - begin) * width, height, fill);
        begin = c;
        memcpy(fill, next, sizeof fill);
    }
}

static void band(FILE *out, const struct series *series, int32_t devices, double top,
                 double height) {
    fprintf(out, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT, top - 6, series->policy->name);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">device 0</text>\n", LEFT - 6,
            top + 10);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", LEFT - 6,
            top + height, devices - 1);
    for (int32_t d = 0; d < devices; d++) {
        row(out, series, devices, d, top + height * d / devices, height / devices);
    }
    fprintf(out,
            "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"none\" "
            "stroke=\"#999\"/>\n",
            LEFT, top, WIDTH - LEFT - 20, height);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%lld microbatches</text>\n",
            WIDTH - 20, top + height + 14, (long long)series->picture_count);
}

static void legend(FILE *out, double top) {
    static const double loads[] = {0, 0.5, 1, 1.25, 1.5, 2, 3, 4};
    fprintf(out, "<text x=\"%d\" y=\"%.1f\">load over the mean</text>\n", LEFT, top + 11);
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        char fill[8];
        colour(loads[i], fill);
        const double x = LEFT + 150 + 76.0 * (double)i;
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"24\" height=\"14\" fill=\"%s\" "
                "stroke=\"#999\"/><text x=\"%.1f\" y=\"%.1f\">%g</text>\n",
                x, top, fill, x + 30, top + 11, loads[i]);
    }
}

bool svg_report(const char *path, const struct setting *setting, const struct series *series,
                int32_t count) {
    const char *why;
    FILE *out = hf_output(path, &why);
    if (!out) {
        fprintf(stderr, "hecate-replay: %s: %s\n", path, why);
        return false;
    }
    const int32_t devices = setting->topology.devices;
    const double height = devices * 8 < HEIGHT_MAX ? devices * 8 : HEIGHT_MAX;
    const double all = TOP + count * (height + BAND_GAP) + 10;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "font-family=\"sans-serif\" font-size=\"12\" shape-rendering=\"crispEdges\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"%d\" y=\"16\">Load of each device over time, layer %u</text>\n",
            WIDTH, all, LEFT, setting->picture_layer);
    for (int32_t i = 0; i < count; i++) {
        band(out, &series[i], devices, TOP + 6 + i * (height + BAND_GAP), height);
    }
    legend(out, all - 32);
    fprintf(out, "</svg>\n");
    const bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return true;
    fprintf(stderr, "hecate-replay: %s: write error\n", path);
    return false;
}
