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

enum { LOOK_MS = 100 }; /* while channels open */

#define GUARD (15 * GW_S) /* an I/O thread is late by so much: it is stuck */

/* A call in work. */
struct sliced {
    uint32_t left; /* channels that still have a slice, a bit each */
    int error;
    uint64_t bytes;
    uint64_t missing;
    const struct gw_io *refused_by; /* or NULL */
};

struct gw_channels {
    struct gw_io *io[GW_IO_CHANNELS_MAX];
    uint32_t count;
    uint16_t values;
    const struct gw_io *failed; /* the first that has, or NULL; the others do like it */
    int failure;
    struct sliced calls[GW_IO_CALLS_MAX];
};

/* Ends all because of one of them, or (NULL) of something else here. */
static void fail_all(struct gw_channels *own, const struct gw_io *failed)
{
    for (uint32_t at = 0; at < own->count; at++)
        gw_io_fail_like(own->io[at], failed);
}

/* A channel has failed, so the others do: who waits for a call in one of them might do so in vain.
 */
static void fail(struct gw_channels *own, const struct gw_io *io, int error)
{
    if (own->failed)
        return;
    own->failed = io;
    own->failure = error;
    fail_all(own, io);
}

/* ---- Opening and closing. ---- */

/* The servers of a channel: those in its turn, so that each hears of few channels, in long trains;
 * or one, if they are fewer than the channels. */
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
    if (mine.channel) {
        mine.largest = 1; /* calls with a bound are the first's */
        if (mine.group.length)
            gw_sock_addr_advance(&mine.group, mine.channel);
    }
    if (port) {
        int host = (int)(strrchr(plan->join, ':') - plan->join);
        int length = snprintf(mine.join, sizeof(mine.join), "%.*s:%u", host, plan->join, port);
        if (length >= (int)sizeof(mine.join))
            return gw_net_fail(error, GRADWIRE_ERR_INVALID, "join is too long: %s", plan->join);
    }
    int code = gw_io_start(&mine, own->io[0], &own->io[own->count], error);
    own->count += code == GRADWIRE_OK;
    return code;
}

/* If the channel has failed, all do, and `error` says why. */
static int take_failure(struct gw_channels *own, uint32_t at, char *error)
{
    const int code = gw_io_failure(own->io[at]);
    if (code == GRADWIRE_OK)
        return code;
    snprintf(error, GW_IO_TEXT_MAX, "%s", gw_io_text(own->io[at]));
    fail(own, own->io[at], code);
    return code;
}

/* Attaching and joining have a deadline each. Meanwhile another channel may fail, because of a rank
 * that has too many. */
static int await_opened(struct gw_channels *own, uint32_t at, const struct gw_io_plan *plan,
                        char *error)
{
    const gw_time end = gw_time_add(gw_clock_now(), 2 * plan->stall + GUARD);
    struct gw_completion opened;
    int code = GRADWIRE_OK;
    while (!code && !gw_io_receive(own->io[at], &opened, LOOK_MS)) {
        for (uint32_t i = 0; i < own->count && !code; i++)
            code = i == at ? GRADWIRE_OK : take_failure(own, i, error); /* its own comes */
        if (!code && !gw_time_before(gw_clock_now(), end))
            return gw_net_fail(error, GRADWIRE_ERR_SYSTEM, "the I/O thread does not answer");
    }
    return code || opened.error == GRADWIRE_OK ? code : take_failure(own, at, error);
}

/* Makes a call in the first channel, for the opening of the others. */
static int call_first(struct gw_channels *own, const struct gw_call *call, char *error)
{
    struct gw_completion done;
    gw_io_send(own->io[0], call, true);
    while (!gw_io_receive(own->io[0], &done, -1))
        continue;
    return done.error == GRADWIRE_OK ? GRADWIRE_OK : take_failure(own, 0, error);
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
    return call_first(own, &call, error);
}

/* All but the first, in which the ranks have met. Nobody goes on before all have all of them: who
 * did, and failed, would fail others that are still coming. */
static int open_more(struct gw_channels *own, const struct gw_io_plan *plan, char *error)
{
    const struct gw_call barrier = {.number = 1, .kind = GW_CALL_BARRIER, .via = GW_VIA_RING};
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
        code = await_opened(own, at, plan, error);
    return code ? code : call_first(own, &barrier, error);
}

int gw_channels_open(const struct gw_io_plan *plan, struct gw_channels **channels, char *error)
{
    struct gw_channels *own = calloc(1, sizeof(*own));
    if (!own)
        return gw_net_fail(error, GRADWIRE_ERR_NO_MEMORY, "out of memory");
    own->values = plan->values;
    int code = start_next(own, plan, 0, error);
    if (!code)
        code = await_opened(own, 0, plan, error);
    if (!code && plan->channels > 1)
        code = open_more(own, plan, error);
    if (code) {
        fail_all(own, own->failed);
        gw_channels_close(own);
    } else {
        *channels = own;
    }
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

bool gw_channels_cut(const struct gw_channels *channels, const struct gw_call *call)
{
    return gw_slices_of(call, channels->count) > 1;
}

bool gw_channels_send(struct gw_channels *channels, const struct gw_call *call, bool waits)
{
    const uint32_t slices = gw_slices_of(call, channels->count);
    for (uint32_t at = 0; at < slices; at++) {
        const struct gw_call slice = gw_slice(call, channels->values, slices, at);
        bool has_room = gw_io_send(channels->io[at], &slice, waits && slices == 1);
        if (!has_room && at == 0)
            return false;
        GW_ASSERT(has_room); /* no channel has more calls than the first */
    }
    channels->calls[call->number % GW_IO_CALLS_MAX] =
        (struct sliced){.left = (UINT32_C(1) << slices) - 1};
    return true;
}

/* A slice of a call has ended. True: so has the call, and *completion is its. */
static bool take_slice(struct gw_channels *own, uint32_t at, const struct gw_completion *slice,
                       struct gw_completion *completion)
{
    struct sliced *call = &own->calls[slice->call % GW_IO_CALLS_MAX];
    const bool is_refused = slice->error && gw_io_refusal(own->io[at], slice->call);
    if (is_refused && !call->error) {
        call->error = slice->error;
        call->refused_by = own->io[at];
    } else if (slice->error && !is_refused) {
        fail(own, own->io[at], slice->error);
        call->error = own->failure;
        call->refused_by = NULL;
    }
    call->bytes += slice->bytes;
    call->missing += slice->missing;
    call->left &= ~(UINT32_C(1) << at);
    if (call->left)
        return false;
    *completion = (struct gw_completion){
        .call = slice->call, .bytes = call->bytes, .missing = call->missing, .error = call->error};
    return true;
}

bool gw_channels_receive(struct gw_channels *channels, struct gw_completion *completion,
                         uint64_t awaited)
{
    const struct sliced *call = &channels->calls[awaited % GW_IO_CALLS_MAX];
    struct gw_completion slice;
    for (;;) {
        for (uint32_t at = 0; at < channels->count; at++)
            while (gw_io_receive(channels->io[at], &slice, 0))
                if (take_slice(channels, at, &slice, completion))
                    return true;
        if (!awaited)
            return false;
        /* It wakes for what any of them has, as they have one descriptor. */
        const uint32_t at = (uint32_t)__builtin_ctz(call->left);
        if (gw_io_receive(channels->io[at], &slice, -1) &&
            take_slice(channels, at, &slice, completion))
            return true;
    }
}

bool gw_channels_have_failed(const struct gw_channels *channels)
{
    return channels->failed != NULL;
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
