/* What became of a job's messages; see message_books.h. */
#include "sim/message_books.h"

#include <stdlib.h>

#include "sim/jobs.h"
#include "sim/message_terms.h"
#include "topo/memory.h"

enum {
    BIN_BITS = 7, /* bins of a power of two: 2^7 */
    BINS = (64 - BIN_BITS + 1) << BIN_BITS,
};

/* Those below 2^7 have bins of their own; others are in bins of their power of two. */
static uint32_t bin_of(gw_time time)
{
    if (time >> BIN_BITS == 0)
        return (uint32_t)time;
    uint32_t shift = 63 - (uint32_t)__builtin_clzll(time) - BIN_BITS;
    return ((shift + 1) << BIN_BITS) + (uint32_t)(time >> shift) - (1u << BIN_BITS);
}

/* The longest time of a bin. */
static gw_time bin_end(uint32_t bin)
{
    uint32_t power = bin >> BIN_BITS;
    uint64_t place = bin & ((1u << BIN_BITS) - 1);
    if (power == 0)
        return place;
    return ((place + (1u << BIN_BITS) + 1) << (power - 1)) - 1;
}

struct gw_sim_books *gw_sim_books_open(uint32_t part_count)
{
    struct gw_sim_books *books = gw_memory_zeroed(part_count * GW_MESSAGE_WAYS, sizeof(*books));
    for (uint32_t i = 0; i < part_count * GW_MESSAGE_WAYS; i++)
        books[i].bins = gw_memory_zeroed(BINS, sizeof(*books[i].bins));
    return books;
}

void gw_sim_books_close(struct gw_sim_books *books, uint32_t part_count)
{
    for (uint32_t i = 0; books && i < part_count * GW_MESSAGE_WAYS; i++)
        free(books[i].bins);
    free(books);
}

struct gw_sim_books *gw_sim_books_at(struct gw_sim_books *books, const struct gw_sim *sim,
                                     uint32_t host, enum gw_message_way way)
{
    const struct gw_sim_part *part = sim->parts;
    while (sim->place[host] >= part->last)
        part++;
    return &books[(uint32_t)(part - sim->parts) * GW_MESSAGE_WAYS + way];
}

void gw_sim_books_sent(struct gw_sim_books *books, gw_time duration)
{
    books->bins[bin_of(duration)]++;
    books->total += duration;
    if (books->longest < duration)
        books->longest = duration;
}

void gw_sim_books_received(struct gw_sim_books *books, uint8_t class, const struct gw_event *event)
{
    books->counts.packets[class] += gw_sim_message_packets(event);
    books->counts.missing[class] += event->missing;
}

/* How long so many of 1000 messages took at most. */
static gw_time quantile(const uint64_t bins[BINS], uint64_t sent, uint32_t per_mille,
                        gw_time longest)
{
    uint64_t rank = (sent * per_mille + 999) / 1000, below = 0;
    for (uint32_t bin = 0; bin < BINS && sent; bin++) {
        below += bins[bin];
        if (below >= rank && below > 0)
            return bin_end(bin) < longest ? bin_end(bin) : longest;
    }
    return 0;
}

/* Of ways [first, end). */
static void sum_up(const struct gw_sim_books *books, uint32_t part_count, uint32_t first,
                   uint32_t end, struct gw_message_result *result)
{
    uint64_t *bins = gw_memory_zeroed(BINS, sizeof(*bins));
    struct gw_sim_message_counts counts = {0};
    unsigned __int128 total = 0;
    *result = (struct gw_message_result){0};
    for (uint32_t part = 0; part < part_count; part++)
        for (uint32_t way = first; way < end; way++) {
            const struct gw_sim_books *own = &books[part * GW_MESSAGE_WAYS + way];
            for (uint32_t bin = 0; bin < BINS; bin++) {
                bins[bin] += own->bins[bin];
                result->sent += own->bins[bin];
            }
            gw_sim_add_stats(&counts, &own->counts, sizeof(counts));
            total += own->total;
            if (result->longest < own->longest)
                result->longest = own->longest;
        }
    for (uint32_t class = 0; class < GW_CLASSES; class ++) {
        result->packets[class] = counts.packets[class];
        result->missing[class] = counts.missing[class];
    }
    result->begun = counts.begun;
    result->important = counts.important;
    result->mean_ps = result->sent ? (double)total / (double)result->sent : 0;
    result->median = quantile(bins, result->sent, 500, result->longest);
    result->p99 = quantile(bins, result->sent, 990, result->longest);
    result->p999 = quantile(bins, result->sent, 999, result->longest);
    free(bins);
}

void gw_sim_books_results(const struct gw_sim_books *books, uint32_t part_count,
                          struct gw_message_result results[GW_MESSAGE_WAYS + 1])
{
    for (uint32_t way = 0; way < GW_MESSAGE_WAYS; way++)
        sum_up(books, part_count, way, way + 1, &results[way]);
    sum_up(books, part_count, 0, GW_MESSAGE_WAYS, &results[GW_MESSAGE_WAYS]);
}
