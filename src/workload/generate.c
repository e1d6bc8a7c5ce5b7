/* What the workload kinds share; see generate.h. */
#include "workload/generate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "topo/memory.h"

enum {
    MODEL_WHY_MAX = 512, /* bytes: the names of all models */
};

int gw_workload_refuse(struct gw_workload_ctx *ctx, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->why, ctx->why_size, format, args);
    va_end(args);
    return error;
}

int gw_workload_check_count(struct gw_workload_ctx *ctx, const char *name, uint64_t flows)
{
    if (flows <= GW_WORKLOAD_FLOWS_MAX)
        return GW_OK;
    return gw_workload_refuse(ctx, GW_ERR_RANGE, "%s gives %llu flows; the limit is %d", name,
                              (unsigned long long)flows, GW_WORKLOAD_FLOWS_MAX);
}

gw_time gw_workload_start(struct gw_workload_ctx *ctx, gw_time start, gw_time spread)
{
    if (spread == 0)
        return start;
    gw_time more = (gw_time)(((unsigned __int128)gw_prng_next(&ctx->prng) * spread) >> 64);
    return gw_workload_later(start, more);
}

/*
 * -ln(x / 2^32) in 1/2^32 for x from 1 to 2^32. The logarithm to base 2 is taken bit by bit:
 * squaring a number in [1, 2) doubles its logarithm, and the result is 2 or more when the next bit
 * is 1.
 */
static uint64_t minus_log(uint64_t x)
{
    const uint64_t ln2_q32 = 2977044472; /* ln(2) * 2^32 */
    uint32_t shift = (uint32_t)__builtin_clzll(x);
    uint64_t mantissa = x << shift; /* in 1/2^63, from 1 to 2 */
    uint64_t log2 = (uint64_t)(63 - shift) << 32;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1) {
        unsigned __int128 square = (unsigned __int128)mantissa * mantissa;
        bool carry = square >> 127;
        mantissa = (uint64_t)(square >> (carry ? 64 : 63));
        log2 |= carry ? bit : 0;
    }
    uint64_t rest = (UINT64_C(32) << 32) - log2;
    return (uint64_t)(((unsigned __int128)rest * ln2_q32) >> 32);
}

uint64_t gw_workload_exponential(struct gw_prng *prng)
{
    return minus_log((gw_prng_next(prng) >> 32) + 1);
}

void gw_workload_add_plain(struct gw_workload *workload, uint32_t src, uint32_t dst, uint64_t bytes,
                           gw_time start)
{
    gw_workload_add_flow(workload, &(struct gw_flow_spec){.src = src,
                                                          .dst = dst,
                                                          .bytes = bytes,
                                                          .start = start,
                                                          .id = workload->flow_count,
                                                          .fires_sent = GW_TRIGGER_NONE,
                                                          .fires_received = GW_TRIGGER_NONE});
}

int gw_workload_value(struct gw_workload *workload, uint32_t first_flow,
                      const struct gw_message_worth *worth, struct gw_workload_ctx *ctx)
{
    if (worth->bound >= GW_Q16_ONE)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "bound must be at least 0 and below 100%%");
    if (worth->important > GW_Q16_ONE)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "important must be from 0 to 100%%");
    if (worth->class > GW_CLASS_DATA_MAX)
        return gw_workload_refuse(ctx, GW_ERR_RANGE, "class must be from 0 to %d, not %u",
                                  GW_CLASS_DATA_MAX, worth->class);
    for (uint32_t i = first_flow; i < workload->flow_count; i++) {
        struct gw_flow_spec *flow = &workload->flows[i];
        flow->bound = flow->background ? 0 : worth->bound;
        flow->unimportant = GW_Q16_ONE - worth->important;
        flow->class = (uint8_t)worth->class;
    }
    return GW_OK;
}

int gw_workload_announce(const char *text, uint8_t *option, struct gw_workload_ctx *ctx)
{
    if (gw_notice_parse(text, option) == GW_OK)
        return GW_OK;
    return gw_workload_refuse(ctx, GW_ERR_INVALID,
                              "announce must be no, a multiple of 5 packets up to 75, or a ratio "
                              "such as 1/4, not %s",
                              text);
}

uint32_t *gw_workload_groups(const struct gw_topo *topo, uint32_t host_count)
{
    uint32_t *group = gw_memory_zeroed(host_count, sizeof(*group));
    uint32_t *size = gw_memory_zeroed(topo->node_count, sizeof(*size));
    bool crossable = true;
    for (uint32_t h = 0; h < host_count; h++) {
        group[h] = topo->nodes[h].group;
        /* A host that may go anywhere is in no group. */
        if (group[h] != GW_GROUP_ANY && ++size[group[h]] > host_count / 2)
            crossable = false;
    }
    for (uint32_t h = 0; h < host_count; h++)
        if (!crossable || group[h] == GW_GROUP_ANY)
            group[h] = topo->node_count + h;
    free(size);
    return group;
}

void gw_workload_shuffle(uint32_t *list, uint32_t count, struct gw_prng *prng)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = gw_prng_below(prng, i);
        uint32_t kept = list[i - 1];
        list[i - 1] = list[other];
        list[other] = kept;
    }
}

/* The path of a file that is named relative to the scenario's folder; to be freed. */
static char *path_of(const char *name, const struct gw_workload_ctx *ctx)
{
    size_t size = strlen(ctx->directory) + strlen(name) + 2;
    char *path = gw_memory_zeroed(size, 1);
    snprintf(path, size, "%s/%s", ctx->directory, name);
    return path;
}

int gw_workload_open(struct gw_workload_file *file, const char *name, struct gw_workload_ctx *ctx)
{
    *file = (struct gw_workload_file){.name = name};
    if (name[0] == '\0')
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "file is missing: the name of a file");
    if (name[0] != '/') {
        char *path = path_of(name, ctx);
        file->stream = fopen(path, "r");
        free(path);
    }
    if (!file->stream)
        file->stream = fopen(name, "r");
    if (!file->stream)
        return gw_workload_refuse(ctx, GW_ERR_SYSTEM, "file %s: %s", name, strerror(errno));
    return GW_OK;
}

/* Reads a line, without its end. Returns 1, 0 at the end of the file, or an error. */
static int read_line(struct gw_workload_file *file, struct gw_workload_ctx *ctx)
{
    uint32_t length = 0;
    int c = getc(file->stream);
    if (c == EOF)
        return 0;
    file->line++;
    for (; c != EOF && c != '\n'; c = getc(file->stream)) {
        if (c == '\0')
            return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                          "no text: there is a NUL byte");
        if (length == GW_WORKLOAD_LINE_MAX - 2)
            return gw_workload_file_error(file, ctx, GW_ERR_RANGE,
                                          "the line is longer than %d characters",
                                          GW_WORKLOAD_LINE_MAX - 2);
        file->text[length++] = (char)c;
    }
    file->text[length] = '\0';
    file->text[strcspn(file->text, "\r")] = '\0';
    return 1;
}

int gw_workload_read(struct gw_workload_file *file, struct gw_workload_ctx *ctx)
{
    int more;
    while ((more = read_line(file, ctx)) > 0) {
        const char *first = file->text + strspn(file->text, " \t");
        if (*first != '\0' && *first != '#')
            return 1;
    }
    if (more == 0 && ferror(file->stream))
        return gw_workload_refuse(ctx, GW_ERR_SYSTEM, "file %s: %s", file->name, strerror(errno));
    return more;
}

int gw_workload_file_error(const struct gw_workload_file *file, struct gw_workload_ctx *ctx,
                           int error, const char *format, ...)
{
    int used = file->line /* 0: it has not even a first one */
                   ? snprintf(ctx->why, ctx->why_size, "file %s:%u: ", file->name, file->line)
                   : snprintf(ctx->why, ctx->why_size, "file %s: the file is empty; ", file->name);
    if (used < 0 || (size_t)used >= ctx->why_size)
        return error;
    va_list args;
    va_start(args, format);
    vsnprintf(ctx->why + used, ctx->why_size - (size_t)used, format, args);
    va_end(args);
    return error;
}

int gw_workload_model(struct gw_model *model, const char *name, struct gw_workload_ctx *ctx)
{
    char why[MODEL_WHY_MAX];
    if (name[0] == '\0')
        return gw_workload_refuse(ctx, GW_ERR_INVALID, "model: missing: its name");
    char *path = path_of(name, ctx);
    bool is_beside = name[0] != '/' && access(path, R_OK) == 0;
    int error = gw_model_load(model, is_beside ? path : name, why, sizeof(why));
    free(path);
    return error ? gw_workload_refuse(ctx, error, "model: %s", why) : GW_OK;
}
