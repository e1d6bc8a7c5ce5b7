/*
 * What the workload kinds share: host groups, start times, files, models and limits.
 *
 * Include this from a kind's file only.
 */
#ifndef GW_WORKLOAD_GENERATE_H
#define GW_WORKLOAD_GENERATE_H

#include <stdio.h>

#include "workload/message_worth.h"
#include "workload/model/model.h"
#include "workload/workload.h"

enum {
    GW_WORKLOAD_FLOWS_MAX = 1 << 24, /* of one workload: 1 GiB of flow descriptions */
    GW_WORKLOAD_LINE_MAX = 512,      /* characters of a line in a workload file */
};

/* Sets ctx->why to a sentence and returns `error`. */
int gw_workload_refuse(struct gw_workload_ctx *ctx, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* `flows` must not exceed the limit; `name` is the parameter that sets their number. */
int gw_workload_check_count(struct gw_workload_ctx *ctx, const char *name, uint64_t flows);

/* `time` plus `delay`, at most the last point in time: starts that late are refused. */
static inline gw_time gw_workload_later(gw_time time, gw_time delay)
{
    const gw_time last = GW_TIME_NEVER - 1;
    return delay > last - time ? last : time + delay;
}

/* A flow's start: `start` plus a random offset in [0, spread). */
gw_time gw_workload_start(struct gw_workload_ctx *ctx, gw_time start, gw_time spread);

/* An exponential random number of mean 1, in 1/2^32, the same on every machine. */
uint64_t gw_workload_exponential(struct gw_prng *prng);

/* Adds a flow that a time starts and that nothing waits for. */
void gw_workload_add_plain(struct gw_workload *workload, uint32_t src, uint32_t dst, uint64_t bytes,
                           gw_time start);

/*
 * Says of all flows from `first_flow` on what they are worth. Returns 0, or a negative error with
 * ctx->why set.
 */
int gw_workload_value(struct gw_workload *workload, uint32_t first_flow,
                      const struct gw_message_worth *worth, struct gw_workload_ctx *ctx);

/*
 * Reads the value of the parameter "announce" into a gw_notice_option. Returns 0, or a negative
 * error with ctx->why set.
 */
int gw_workload_announce(const char *text, uint8_t *option, struct gw_workload_ctx *ctx);

/* Its row in a kind's table; `path` is that of the text in the cfg. */
#define GW_ANNOUNCE_PARAM(cfg_type, path)                                                          \
    {                                                                                              \
        .name = "announce", .type = GW_PARAM_TEXT, .offset = offsetof(cfg_type, path),             \
        .initial = "1/4",                                                                          \
        .help = "with pcn.enable: bursts are announced with a marking threshold of so many "       \
                "packets, a multiple of 5 up to 75, or by the formula with the ratio 1/1, 1/2, "   \
                "1/4 and so on, or not at all: no (PCN section 3.3)"                               \
    }

/*
 * The group (pod, rack) of each of the first `host_count` hosts, to be freed by the caller; every
 * host is a group of its own when some group holds more than half of them, so that not all traffic
 * could cross groups.
 */
uint32_t *gw_workload_groups(const struct gw_topo *topo, uint32_t host_count);

/* Puts the list into a random order. */
void gw_workload_shuffle(uint32_t *list, uint32_t count, struct gw_prng *prng);

/* A text file that is read line by line. */
struct gw_workload_file {
    FILE *stream;
    const char *name; /* as in the scenario */
    uint32_t line;    /* number of the line read last; 0 before the first */
    char text[GW_WORKLOAD_LINE_MAX];
};

/*
 * Opens `name`, the value of the parameter "file": relative to the scenario's folder, or else to
 * the current one. Returns 0 or a negative error with ctx->why set. Ends with fclose().
 */
int gw_workload_open(struct gw_workload_file *file, const char *name, struct gw_workload_ctx *ctx);

/* Reads the next line that is neither empty nor a comment (#), without its end. Returns 1, 0 at the
 * end of the file, or a negative error with ctx->why set. */
int gw_workload_read(struct gw_workload_file *file, struct gw_workload_ctx *ctx);

/* Sets ctx->why to "file NAME:LINE: sentence", or says that the file is empty, and returns `error`.
 */
int gw_workload_file_error(const struct gw_workload_file *file, struct gw_workload_ctx *ctx,
                           int error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Loads the value of the parameter "model": a model of the project, or a file, relative to the
 * scenario's folder or else to the current one. Returns 0 or a negative error with ctx->why set.
 */
int gw_workload_model(struct gw_model *model, const char *name, struct gw_workload_ctx *ctx);

#endif
