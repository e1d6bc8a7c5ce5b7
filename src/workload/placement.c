/* Places jobs on hosts; see placement.h. */
#include "workload/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "topo/memory.h"
#include "workload/generate.h"

#define NONE UINT32_MAX

void gw_racks_init(struct gw_racks *racks, const struct gw_topo *topo)
{
    uint32_t *group = gw_workload_groups(topo, topo->host_count);
    uint32_t *number = gw_memory_zeroed(topo->node_count + topo->host_count, sizeof(*number));
    *racks = (struct gw_racks){
        .rack = gw_memory_zeroed(topo->host_count, sizeof(uint32_t)),
        .free = gw_memory_zeroed(topo->host_count, sizeof(uint32_t)),
        .is_taken = gw_memory_zeroed(topo->host_count, sizeof(bool)),
        .host_count = topo->host_count,
        .free_count = topo->host_count,
    };
    for (uint32_t h = 0; h < topo->host_count; h++) {
        if (number[group[h]] == 0)
            number[group[h]] = ++racks->count;
        racks->rack[h] = number[group[h]] - 1;
        racks->free[racks->rack[h]]++;
    }
    free(number);
    free(group);
}

void gw_racks_fini(struct gw_racks *racks)
{
    free(racks->rack);
    free(racks->free);
    free(racks->is_taken);
}

void gw_racks_clear(struct gw_racks *racks)
{
    for (uint32_t h = 0; h < racks->host_count; h++)
        if (racks->is_taken[h])
            racks->free[racks->rack[h]]++;
    memset(racks->is_taken, 0, racks->host_count * sizeof(racks->is_taken[0]));
    racks->free_count = racks->host_count;
}

static uint32_t take_host(struct gw_racks *racks, uint32_t host)
{
    GW_ASSERT(!racks->is_taken[host]);
    racks->is_taken[host] = true;
    racks->free[racks->rack[host]]--;
    racks->free_count--;
    return host;
}

void gw_racks_occupy(struct gw_racks *racks, uint32_t host)
{
    if (!racks->is_taken[host])
        take_host(racks, host);
}

uint32_t gw_racks_take(struct gw_racks *racks, uint32_t rack)
{
    if (racks->free_count == 0)
        return NONE;
    while (racks->free[rack % racks->count] == 0)
        rack++;
    uint32_t host = 0;
    while (racks->is_taken[host] || racks->rack[host] != rack % racks->count)
        host++;
    return take_host(racks, host);
}

/* The rack to put so many hosts into: the fullest that has room for all, else the emptiest. */
static uint32_t best_rack(const struct gw_racks *racks, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t r = 1; r < racks->count; r++) {
        bool fits = racks->free[r] >= count, best_fits = racks->free[best] >= count;
        if (fits != best_fits ? fits
            : fits            ? racks->free[r] < racks->free[best]
                              : racks->free[r] > racks->free[best])
            best = r;
    }
    return best;
}

static void place_packed(struct gw_racks *racks, uint32_t *hosts, uint32_t count)
{
    while (count > 0) {
        uint32_t rack = best_rack(racks, count);
        for (; count > 0 && racks->free[rack] > 0; count--)
            *hosts++ = gw_racks_take(racks, rack);
    }
}

static uint32_t take_random(struct gw_racks *racks, struct gw_prng *prng)
{
    uint32_t skip = gw_prng_below(prng, racks->free_count), host = 0;
    while (racks->is_taken[host] || skip-- > 0)
        host++;
    return take_host(racks, host);
}

static void place_spread(struct gw_racks *racks, bool interleaved, uint32_t *hosts,
                         uint32_t workers, uint32_t servers)
{
    for (uint32_t rank = 0; rank < workers; rank++)
        hosts[rank] = gw_racks_take(
            racks, interleaved ? rank : (uint32_t)((uint64_t)rank * racks->count / workers));
    for (uint32_t s = 0; s < servers; s++)
        hosts[workers + s] = gw_racks_take(racks, racks->count - 1);
}

bool gw_racks_place(struct gw_racks *racks, const struct gw_place *place, uint32_t *hosts,
                    uint32_t workers, uint32_t servers)
{
    uint64_t count = (uint64_t)workers + servers;
    if (count > racks->free_count)
        return false;
    switch (place->how) {
    case GW_PLACEMENT_SPREAD:
        place_spread(racks, place->interleaved, hosts, workers, servers);
        break;
    case GW_PLACEMENT_PACKED:
        place_packed(racks, hosts, (uint32_t)count);
        break;
    case GW_PLACEMENT_RANDOM:
        for (uint64_t i = 0; i < count; i++)
            hosts[i] = take_random(racks, place->prng);
        break;
    case GW_PLACEMENT_GIVEN:
        if (count > place->given->count - place->given->used)
            return false;
        for (uint64_t i = 0; i < count; i++)
            hosts[i] = take_host(racks, place->given->hosts[place->given->used++]);
        break;
    }
    return true;
}

/* Adds hosts `first` to `last`, none of which may be on the list. */
static int list_add(struct gw_host_list *list, uint32_t first, uint32_t last, bool *is_listed,
                    struct gw_workload_ctx *ctx)
{
    for (uint32_t host = first; host <= last; host++) {
        if (is_listed[host])
            return gw_workload_refuse(ctx, GW_ERR_INVALID, "hosts: %u is there twice", host);
        is_listed[host] = true;
        list->hosts =
            gw_memory_grow(list->hosts, &list->room, list->count + 1, sizeof(list->hosts[0]));
        list->hosts[list->count++] = host;
    }
    return GW_OK;
}

/* Reads a number of up to nine digits and moves behind it; false: there is none. */
static bool read_number(const char **text, uint32_t *number)
{
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 9)
        return false;
    *number = (uint32_t)strtoul(*text, NULL, 10);
    *text += digits;
    return true;
}

/* Reads "7" or "0-2", and the comma behind it when more follows. */
static bool read_range(const char **text, uint32_t *first, uint32_t *last)
{
    if (!read_number(text, first))
        return false;
    *last = *first;
    if (**text == '-') {
        (*text)++;
        if (!read_number(text, last) || *first > *last)
            return false;
    }
    if (**text == ',' && (*text)[1] != '\0')
        (*text)++;
    else if (**text != '\0')
        return false;
    return true;
}

int gw_host_list_parse(struct gw_host_list *list, const char *text, struct gw_workload_ctx *ctx)
{
    *list = (struct gw_host_list){0};
    bool *is_listed = gw_memory_zeroed(ctx->topo->host_count, sizeof(*is_listed));
    int error = GW_OK;
    while (*text && !error) {
        uint32_t first, last;
        const char *range = text;
        if (!read_range(&text, &first, &last))
            error = gw_workload_refuse(ctx, GW_ERR_INVALID, "hosts must be like 3,0-2,7, not %s",
                                       range);
        else if (last >= ctx->topo->host_count)
            error =
                gw_workload_refuse(ctx, GW_ERR_RANGE, "hosts: %u is not one of the topology's %u",
                                   last, ctx->topo->host_count);
        else
            error = list_add(list, first, last, is_listed, ctx);
    }
    free(is_listed);
    return error;
}

void gw_host_list_free(struct gw_host_list *list)
{
    free(list->hosts);
    *list = (struct gw_host_list){0};
}
