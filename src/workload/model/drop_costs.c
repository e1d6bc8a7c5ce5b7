/* Curves of what lost gradients cost; see drop_costs.h. */
#include "workload/model/drop_costs.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "workload/model/csv_line.h"

#define HEADER "queue,gradients,loss,rounds"

/* What training bears to lose at the same speed of convergence: DLCP, section 2.3 and figure 5. */
#define FRONT 0.011
#define BACK  0.004
#define SMALL 0.016
#define LARGE 0.001

#define LOSS_MIN 1e-9 /* no training tells it from none */

enum {
    COLUMNS = 4,
    LINE_MAX_SIZE = 512,
    ROUNDS_MAX = 1000000,
};

/* A file on its way in. */
struct reader {
    const char *path;
    uint32_t line;
    uint32_t queues;
    char *why;
    uint32_t why_size;
};

void gw_drop_costs_default(struct gw_drop_costs *costs, uint32_t queues)
{
    /* What small and large ones bear, brought to the mean of both being that of their layers. */
    double scale = 2 / (1 / SMALL + 1 / LARGE);
    *costs = (struct gw_drop_costs){0};
    for (uint32_t i = 0; i < queues; i++) {
        double borne = queues == 1 ? (FRONT + BACK) / 2 : FRONT + (BACK - FRONT) * i / (queues - 1);
        costs->small[i] =
            (struct gw_drop_curve){.count = 1, .loss = {borne}, .rounds = {scale / SMALL}};
        costs->large[i] =
            (struct gw_drop_curve){.count = 1, .loss = {borne}, .rounds = {scale / LARGE}};
    }
}

double gw_drop_cost(const struct gw_drop_curve *curve, double loss)
{
    double from = 0, rounds = 0;
    for (uint32_t i = 0; i < curve->count; i++) {
        if (loss <= curve->loss[i] || i == curve->count - 1)
            return rounds + (curve->rounds[i] - rounds) * (loss - from) / (curve->loss[i] - from);
        from = curve->loss[i];
        rounds = curve->rounds[i];
    }
    return 0;
}

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *reader, const char *format,
                                                        ...)
{
    int used = reader->line
                   ? snprintf(reader->why, reader->why_size, "%s:%u: ", reader->path, reader->line)
                   : snprintf(reader->why, reader->why_size, "%s: ", reader->path);
    if (used < 0 || (uint32_t)used >= reader->why_size)
        return GW_ERR_INVALID;
    va_list args;
    va_start(args, format);
    vsnprintf(reader->why + used, reader->why_size - (uint32_t)used, format, args);
    va_end(args);
    return GW_ERR_INVALID;
}

/* A decimal number that is not negative, also with an exponent, as 1e-05, and what follows it. NAN:
 * none. */
static double parse_number(const char *text, const char **rest)
{
    char *end;
    *rest = text;
    if (!*text || !strchr("0123456789.", *text) || strpbrk(text, "xX"))
        return NAN;
    double number = strtod(text, &end);
    *rest = end;
    return end > text ? number : NAN;
}

/* NAN: none. */
static double parse_loss(const char *text)
{
    const char *rest;
    double loss = parse_number(text, &rest);
    if (strcmp(rest, "%") == 0)
        return loss / 100;
    return *rest ? NAN : loss;
}

static double parse_rounds(const char *text)
{
    const char *rest;
    double rounds = parse_number(text, &rest);
    return *rest ? NAN : rounds;
}

static int add_point(struct gw_drop_costs *costs, struct reader *reader, char *columns[COLUMNS])
{
    uint64_t queue;
    double loss = parse_loss(columns[2]), rounds = parse_rounds(columns[3]);
    if (gw_parse_count(columns[0], &queue) != GW_OK || queue < 1 || queue > reader->queues)
        return refuse(reader, "queue must be from 1 to %u, not '%s'", reader->queues, columns[0]);
    bool small = strcmp(columns[1], "small") == 0;
    if (!small && strcmp(columns[1], "large") != 0)
        return refuse(reader, "gradients must be small or large, not '%s'", columns[1]);
    if (!(loss >= LOSS_MIN && loss <= 1))
        return refuse(reader, "loss must be from %g to 1, or as a percentage, not '%s'", LOSS_MIN,
                      columns[2]);
    if (!(rounds >= 0 && rounds <= ROUNDS_MAX))
        return refuse(reader, "rounds must be a number from 0 to %d, not '%s'", ROUNDS_MAX,
                      columns[3]);
    struct gw_drop_curve *curve = small ? &costs->small[queue - 1] : &costs->large[queue - 1];
    if (curve->count == GW_DROP_POINTS_MAX)
        return refuse(reader, "more than %d points of one curve", GW_DROP_POINTS_MAX);
    if (curve->count > 0 && loss <= curve->loss[curve->count - 1])
        return refuse(reader, "loss must be above that of the point before, not '%s'", columns[2]);
    if (curve->count > 0 && rounds < curve->rounds[curve->count - 1])
        return refuse(reader, "rounds must not be below those of the point before, not '%s'",
                      columns[3]);
    curve->loss[curve->count] = loss;
    curve->rounds[curve->count++] = rounds;
    return GW_OK;
}

/* The next line without its end. Returns 1, 0 at the end of the file, or an error. */
static int next_line(struct reader *reader, FILE *stream, char text[LINE_MAX_SIZE])
{
    uint32_t length = 0;
    int c = getc(stream);
    if (c == EOF)
        return 0;
    reader->line++;
    for (; c != EOF && c != '\n'; c = getc(stream)) {
        if (c == '\0')
            return refuse(reader, "no text: there is a NUL byte");
        if (length == LINE_MAX_SIZE - 2)
            return refuse(reader, "the line is longer than %d characters", LINE_MAX_SIZE - 2);
        text[length++] = (char)c;
    }
    text[length] = '\0';
    text[strcspn(text, "\r")] = '\0';
    return 1;
}

static int add_line(struct gw_drop_costs *costs, struct reader *reader, char *text, bool *header)
{
    char *columns[COLUMNS];
    text = gw_csv_trim(text);
    if (*text == '\0' || *text == '#')
        return GW_OK;
    if (!*header) {
        *header = strcmp(text, HEADER) == 0;
        return *header ? GW_OK : refuse(reader, "the first line must be " HEADER);
    }
    uint32_t count = gw_csv_split(text, columns, COLUMNS);
    if (count != COLUMNS)
        return refuse(reader, "has %u columns instead of %d (" HEADER ")", count, COLUMNS);
    return add_point(costs, reader, columns);
}

/* Queues without points get those of the queue before. */
static int fill(struct gw_drop_curve *curves, struct reader *reader, const char *kind)
{
    if (curves[0].count == 0)
        return refuse(reader, "queue 1 has no point of %s gradients", kind);
    for (uint32_t i = 1; i < reader->queues; i++)
        if (curves[i].count == 0)
            curves[i] = curves[i - 1];
    return GW_OK;
}

int gw_drop_costs_load(struct gw_drop_costs *costs, const char *path, uint32_t queues, char *why,
                       uint32_t why_size)
{
    struct reader reader = {.path = path, .queues = queues, .why = why, .why_size = why_size};
    char text[LINE_MAX_SIZE];
    bool header = false;
    int more, error = GW_OK;
    FILE *stream = fopen(path, "r");
    if (!stream)
        return refuse(&reader, "%s", strerror(errno));
    *costs = (struct gw_drop_costs){0};
    while (!error && (more = next_line(&reader, stream, text)) != 0)
        error = more < 0 ? more : add_line(costs, &reader, text, &header);
    if (!error && ferror(stream)) {
        reader.line = 0;
        error = refuse(&reader, "%s", strerror(errno));
    }
    fclose(stream);
    if (error)
        return error;
    reader.line = 0;
    if (!header)
        return refuse(&reader, "the file is empty; the first line must be " HEADER);
    error = fill(costs->small, &reader, "small");
    return error ? error : fill(costs->large, &reader, "large");
}
