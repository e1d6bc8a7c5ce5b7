/*
 * Distributions of sizes; see sizes.h. A file has lines `bytes cumulative_probability`.
 */
#include "workload/sizes.h"

#include "base/error.h"
#include "base/units.h"
#include "topo/memory.h"

#define CHANCE_ONE     (UINT64_C(1) << 32)
#define SIZE_MAX_BYTES (UINT64_C(1) << 40) /* keeps sums of sizes and probabilities in 128 bits */

enum {
    CHOICE_FILE = 0, /* as in GW_SIZES_CHOICES */
};

/*
 * The web-search workload: sizes of flows in a cluster that answers queries, measured by Alizadeh
 * et al. (DCTCP, SIGCOMM 2010, figure 4), as the simulations of pFabric (SIGCOMM 2013, section 5)
 * and PIAS (NSDI 2015, section 5) have them: in packets of 1460 bytes, 1138 on average. More than
 * half of the flows are below 100 KB, and most bytes are in those above 10 MB.
 */
static const struct {
    uint32_t packets;
    uint32_t percent;
} web_search[] = {
    {6, 15},   {13, 20},   {19, 30},   {33, 40},   {53, 53},     {133, 60},
    {667, 70}, {1333, 80}, {3333, 90}, {6667, 97}, {20000, 100},
};

enum {
    WEB_SEARCH_PACKET = 1460, /* bytes */
};

static void add_point(struct gw_sizes *sizes, struct gw_size_point point)
{
    sizes->points = gw_memory_grow(sizes->points, &sizes->room, sizes->count + 1, sizeof(point));
    sizes->points[sizes->count++] = point;
}

static void make_web_search(struct gw_sizes *sizes)
{
    for (size_t i = 0; i < sizeof(web_search) / sizeof(web_search[0]); i++)
        add_point(sizes, (struct gw_size_point){
                             .bytes = (uint64_t)web_search[i].packets * WEB_SEARCH_PACKET,
                             .chance = web_search[i].percent * CHANCE_ONE / 100,
                         });
}

/* Reads one line of the file. */
static int read_point(struct gw_workload_file *file, struct gw_sizes *sizes,
                      struct gw_workload_ctx *ctx)
{
    char bytes_text[32], chance_text[32], rest;
    struct gw_size_point point;
    if (sscanf(file->text, "%31s %31s %c", bytes_text, chance_text, &rest) != 2)
        return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                      "a line must be: bytes cumulative_probability");
    int error = gw_parse_bytes(bytes_text, &point.bytes);
    if (error || point.bytes > SIZE_MAX_BYTES)
        return gw_workload_file_error(file, ctx, error ? error : GW_ERR_RANGE, "bytes: %s: %s",
                                      gw_error_message(error ? error : GW_ERR_RANGE), bytes_text);
    error = gw_parse_chance(chance_text, &point.chance);
    if (error)
        return gw_workload_file_error(file, ctx, error, "cumulative_probability: %s: %s",
                                      gw_error_message(error), chance_text);
    const struct gw_size_point *last = sizes->count ? &sizes->points[sizes->count - 1] : NULL;
    if (last && (point.bytes < last->bytes || point.chance < last->chance))
        return gw_workload_file_error(file, ctx, GW_ERR_INVALID,
                                      "bytes and cumulative_probability must not fall");
    add_point(sizes, point);
    return GW_OK;
}

static int read_file(struct gw_sizes *sizes, const char *name, struct gw_workload_ctx *ctx)
{
    struct gw_workload_file file;
    int error = gw_workload_open(&file, name, ctx);
    if (error)
        return error;
    int more;
    while ((more = gw_workload_read(&file, ctx)) > 0 && !error)
        error = read_point(&file, sizes, ctx);
    if (!error)
        error = more;
    if (!error && (sizes->count == 0 || sizes->points[sizes->count - 1].chance != CHANCE_ONE))
        error = gw_workload_file_error(&file, ctx, GW_ERR_INVALID,
                                       "the last cumulative_probability must be 1");
    fclose(file.stream);
    return error;
}

int gw_sizes_make(struct gw_sizes *sizes, uint32_t choice, const char *file,
                  struct gw_workload_ctx *ctx)
{
    *sizes = (struct gw_sizes){0};
    if (choice == CHOICE_FILE)
        return read_file(sizes, file, ctx);
    if (file[0])
        return gw_workload_refuse(ctx, GW_ERR_INVALID,
                                  "file and sizes: a distribution comes from one of them");
    make_web_search(sizes);
    return GW_OK;
}

uint64_t gw_sizes_at(const struct gw_sizes *sizes, uint64_t chance)
{
    uint32_t i = 0;
    while (sizes->points[i].chance <= chance)
        i++;
    struct gw_size_point high = sizes->points[i];
    struct gw_size_point low =
        i ? sizes->points[i - 1] : (struct gw_size_point){.bytes = high.bytes};
    unsigned __int128 rise = (unsigned __int128)(high.bytes - low.bytes) * (chance - low.chance);
    uint64_t bytes = low.bytes + (uint64_t)(rise / (high.chance - low.chance));
    return bytes ? bytes : 1;
}

unsigned __int128 gw_sizes_mean(const struct gw_sizes *sizes)
{
    unsigned __int128 sum = 0;
    struct gw_size_point low = {.bytes = sizes->points[0].bytes};
    for (uint32_t i = 0; i < sizes->count; i++) {
        struct gw_size_point high = sizes->points[i];
        sum += (unsigned __int128)(low.bytes + high.bytes) * (high.chance - low.chance) / 2;
        low = high;
    }
    return sum;
}
