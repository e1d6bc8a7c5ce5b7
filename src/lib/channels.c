/*
 * Channels; see channels.h.
 *
 * They open one after the other: when all ranks have met in the first, and rank 0 is the server,
 * it tells the others the ports where it listens with the rest of its channels, so that they need
 * none that is agreed on before. A call has the same number in all of them.
 */
#include "lib/channels.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "lib/slices.h"
#include "net/clock.h"
#include "net/net_error.h"

#define GUARD (15 * GW_S) /* an I/O thread is late by so much: it is stuck */

/* A call in work. */
struct sliced {
    uint32_t left; /* slices */
    int error;     /* the first */
    uint64_t bytes;
    uint64_t missing;
    const struct gw_io *refused_by; /* or NULL */
};

struct gw_channels {
    struct gw_io *io[GW_IO_CHANNELS_MAX];
    uint32_t in_work[GW_IO_CHANNELS_MAX]; /* calls */
    uint32_t count;
    uint16_t values;
    const struct gw_io *failed; /* the first that has; or NULL */
    int failure;
    struct sliced calls[GW_IO_CALLS_MAX];
};

/* ---- Opening and closing. ---- */

/* The servers of a channel: every so-manieth, so that each of them hears of few channels, in long
 * trains; or one, if they are fewer than the channels. */
static void choose_servers(struct gw_io_plan *plan)
{
    uint32_t count = 0, all = plan->server_count;
    for (uint32_t at = all ? plan->channel % all : 0; at < all; at += plan->channels)
        memmove(plan->servers[count++], plan->servers[at], sizeof(plan->servers[at]));
    plan->server_count = count;
}

/* Starts the next channel. `port`: where rank 0 has it, if that is the server and not we. */
static int start_next(struct gw_channels *own, const struct gw_io_plan *plan, uint32_t port,
                      char *error)
{
    struct gw_io_plan mine = *plan;
    mine.channel = (uint16_t)own->count;
    choose_servers(&mine);
    if (own->count && plan->group.length)
        gw_sock_addr_advance(&mine.group, own->count);
    if (port) {
        int host = (int)(strrchr(plan->join, ':') - plan->join);
        snprintf(mine.join, sizeof(mine.join), "%.*s:%u", host, plan->join, port);
    }
    int code = gw_io_start(&mine, own->io[0], &own->io[own->count], error);
    own->count += code == GRADWIRE_OK;
    return code;
}

/* Attaching and joining have a deadline each. It may wake for what another channel has. */
static int await_opened(struct gw_io *io, const struct gw_io_plan *plan, char *error)
{
    const gw_time wait = 2 * plan->stall + GUARD, end = gw_time_add(gw_clock_now(), wait);
    struct gw_completion opened;
    while (!gw_io_receive(io, &opened, (int)(wait / GW_MS)))
        if (!gw_time_before(gw_clock_now(), end))
            return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "the I/O thread does not answer");
    if (opened.error)
        snprintf(error, GW_IO_TEXT_MAX, "%s", gw_io_text(io));
    return opened.error;
}

/* Rank 0's, to all ranks. */
static int tell_ports(struct gw_channels *own, int32_t *ports, uint32_t count, char *error)
{
    const struct gw_call call = {.number = 1,
                                 .kind = GW_CALL_BROADCAST,
                                 .in = ports,
                                 .out = ports,
                                 .count = count,
                                 .type = GW_DTYPE_I32};
    struct gw_completion told;
    gw_io_send(own->io[0], &call, true);
    while (!gw_io_receive(own->io[0], &told, -1))
        continue;
    if (told.error)
        snprintf(error, GW_IO_TEXT_MAX, "%s", gw_io_text(own->io[0]));
    return told.error;
}

/* All but the first, in which the ranks have met. */
static int open_more(struct gw_channels *own, const struct gw_io_plan *plan, char *error)
{
    int32_t ports[GW_IO_CHANNELS_MAX] = {0};
    const bool has_home = plan->server_count == 0, is_home = has_home && plan->rank == 0;
    int code = GRADWIRE_OK;
    for (uint32_t at = 1; is_home && !code && at < plan->channels; at++)
        if (!(code = start_next(own, plan, 0, error)))
            ports[at] = gw_io_port(own->io[at]);
    if (!code && has_home)
        code = tell_ports(own, ports, plan->channels, error);
    for (uint32_t at = 1; !is_home && !code && at < plan->channels; at++)
        code = start_next(own, plan, (uint32_t)ports[at], error);
    for (uint32_t at = 1; !code && at < plan->channels; at++)
        code = await_opened(own->io[at], plan, error);
    return code;
}

int gw_channels_open(const struct gw_io_plan *plan, struct gw_channels **channels, char *error)
{
    struct gw_channels *own = calloc(1, sizeof(*own));
    if (!own)
        return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory");
    own->values = plan->values;
    int code = start_next(own, plan, 0, error);
    if (!code)
        code = await_opened(own->io[0], plan, error);
    if (!code && plan->channels > 1)
        code = open_more(own, plan, error);
    if (code)
        gw_channels_close(own);
    else
        *channels = own;
    return code;
}

void gw_channels_close(struct gw_channels *channels)
{
    for (uint32_t at = 0; at < channels->count; at++)
        gw_io_leave(channels->io[at]); /* all at the same time */
    while (channels->count)
        gw_io_stop(channels->io[--channels->count]);
    free(channels);
}

/* ---- Calls. ---- */

bool gw_channels_send(struct gw_channels *channels, const struct gw_call *call, bool waits)
{
    const uint32_t slices = gw_slices_of(call, channels->count);
    for (uint32_t at = 0; at < slices; at++) {
        const struct gw_call slice = gw_slice(call, channels->values, slices, at);
        bool has_room = gw_io_send(channels->io[at], &slice, waits && slices == 1);
        if (!has_room && at == 0)
            return false;
        GW_ASSERT(has_room); /* no channel has more calls than the first */
        channels->in_work[at]++;
    }
    channels->calls[call->number % GW_IO_CALLS_MAX] = (struct sliced){.left = slices};
    return true;
}

/* A channel has failed: so do the others, or those who wait for their calls might do so in vain. */
static void fail(struct gw_channels *own, const struct gw_io *io, int error)
{
    if (own->failed)
        return;
    own->failed = io;
    own->failure = error;
    for (uint32_t at = 0; at < own->count; at++)
        if (own->io[at] != io)
            gw_io_leave(own->io[at]);
}

/* A slice of a call has ended. True: so has the call, and *completion is its. */
static bool take_slice(struct gw_channels *own, uint32_t at, const struct gw_completion *slice,
                       struct gw_completion *completion)
{
    struct sliced *call = &own->calls[slice->call % GW_IO_CALLS_MAX];
    const bool is_refused = slice->error && gw_io_refusal(own->io[at], slice->call);
    if (slice->error && !is_refused)
        fail(own, own->io[at], slice->error);
    if (is_refused)
        call->refused_by = own->io[at];
    if (slice->error && !call->error)
        call->error = is_refused ? slice->error : own->failure;
    call->bytes += slice->bytes;
    call->missing += slice->missing;
    own->in_work[at]--;
    if (--call->left)
        return false;
    *completion = (struct gw_completion){
        .call = slice->call, .bytes = call->bytes, .missing = call->missing, .error = call->error};
    return true;
}

/* The first that has something in work. */
static uint32_t find_busy(const struct gw_channels *own)
{
    uint32_t at = 0;
    while (at + 1 < own->count && !own->in_work[at])
        at++;
    return at;
}

bool gw_channels_receive(struct gw_channels *channels, struct gw_completion *completion, bool waits)
{
    struct gw_completion slice;
    for (;;) {
        for (uint32_t at = 0; at < channels->count; at++)
            while (gw_io_receive(channels->io[at], &slice, 0))
                if (take_slice(channels, at, &slice, completion))
                    return true;
        if (!waits)
            return false;
        /* It wakes for what any of them has, as they have one descriptor. */
        const uint32_t at = find_busy(channels);
        if (gw_io_receive(channels->io[at], &slice, -1) &&
            take_slice(channels, at, &slice, completion))
            return true;
    }
}

struct gw_io *gw_channels_first(const struct gw_channels *channels)
{
    return channels->io[0];
}

const char *gw_channels_text(const struct gw_channels *channels)
{
    return gw_io_text(channels->failed ? channels->failed : channels->io[0]);
}

const char *gw_channels_refusal(const struct gw_channels *channels, uint64_t call)
{
    const struct gw_io *io = channels->calls[call % GW_IO_CALLS_MAX].refused_by;
    return io ? gw_io_refusal(io, call) : NULL;
}

void gw_channels_stats(const struct gw_channels *channels, struct gradwire_stats *stats)
{
    enum { FIRST = offsetof(struct gradwire_stats, fragments) / sizeof(uint64_t) };
    enum { ALL = sizeof(struct gradwire_stats) / sizeof(uint64_t) };
    union {
        struct gradwire_stats stats;
        uint64_t numbers[ALL];
    } sum = {.numbers = {0}}, one;
    for (uint32_t at = 0; at < channels->count; at++) {
        gw_io_stats(channels->io[at], &one.stats);
        for (uint32_t i = FIRST; i < ALL; i++)
            sum.numbers[i] += one.numbers[i];
    }
    *stats = sum.stats;
}
