/*
 * Moves a call on; see coll_run_impl.h. That segments follow one another through the steps is the
 * segmentation of Pjesivac-Grbovic et al. (Cluster Computing 2007).
 *
 * Each worker sends the messages of a call in the order of coll_row.h, and takes them in this
 * order, combining them unless the endpoint has done so; they may arrive in any.
 */
#include <string.h>

#include "base/align.h"
#include "base/assert.h"
#include "base/error.h"
#include "core/quant/combine.h"
#include "core/ranks/coll_parts.h"

unsigned char *gw_coll_run_segment(const struct gw_coll_run *run, const struct gw_coll_place *place)
{
    return run->segments + (size_t)(place - run->places) * gw_aligned(run->cfg.segment);
}

static unsigned char *out_at(const struct gw_coll_run *run, const struct gw_coll_message *message)
{
    return gw_coll_call_out(&run->call, run->cfg.rank, message->first);
}

struct gw_coll_place *gw_coll_run_place(const struct gw_coll_run *run, uint32_t tag)
{
    for (uint32_t i = 0; i < run->lane_count * run->place_count; i++)
        if (run->places[i].state != GW_COLL_PLACE_FREE && run->places[i].tag == tag)
            return &run->places[i];
    return NULL;
}

struct gw_coll_lane *gw_coll_run_lane(const struct gw_coll_run *run, uint32_t peer)
{
    uint32_t i = 0;
    while (i < run->lane_count && run->lanes[i].peer != peer)
        i++;
    return i < run->lane_count ? &run->lanes[i] : NULL;
}

bool gw_coll_run_stays(const struct gw_coll_run *run, const struct gw_coll_message *message)
{
    return run->keeps_own && message->merge == GW_COLL_COMBINE;
}

/* What completes a result comes there at once, unless the worker's own values are there. */
unsigned char *gw_coll_run_memory(const struct gw_coll_run *run, const struct gw_coll_place *place,
                                  const struct gw_coll_message *message)
{
    bool is_copy = message->merge == GW_COLL_COPY;
    if (is_copy && run->call.parts && run->parts.terms.keeps_own)
        return gw_coll_run_segment(run, place); /* what is no result must not come there */
    bool is_apart = run->keeps_own && message->merge == GW_COLL_COMPLETE &&
                    gw_coll_call_in(&run->call, message->first) != out_at(run, message);
    return is_copy || is_apart ? out_at(run, message) : gw_coll_run_segment(run, place);
}

/* Combines what has arrived with the worker's own values. False: a sum or product does not fit. */
static bool combine(const struct gw_coll_run *run, const struct gw_coll_place *place,
                    const struct gw_coll_message *message)
{
    unsigned char *arrived = gw_coll_run_memory(run, place, message);
    unsigned char *to = gw_coll_run_stays(run, message) ? arrived : out_at(run, message);
    const unsigned char *other =
        arrived == to ? gw_coll_call_in(&run->call, message->first) : arrived;
    return gw_combine(run->cfg.kernels, &run->mergers[message->merge].how, to, other,
                      message->count);
}

/* With payload: takes the message if it has arrived. False: it has not, or the call has failed. */
static bool apply_memory(struct gw_coll_run *run, const struct gw_coll_message *message)
{
    struct gw_coll_place *place = gw_coll_run_place(run, message->tag);
    if (!place || place->state != GW_COLL_PLACE_ARRIVED)
        return false;
    bool fits = run->call.parts ? gw_coll_parts_take(run, place, message)
                                : message->merge == GW_COLL_COPY || place->is_merged ||
                                      combine(run, place, message);
    if (!fits) {
        gw_coll_run_fail(run, GW_JOB_OVERFLOW, run->cfg.rank);
        return false;
    }
    place->state = gw_coll_run_stays(run, message) ? GW_COLL_PLACE_COMBINED : GW_COLL_PLACE_FREE;
    run->awaited--;
    return true;
}

/* Combines what has arrived, as far as it is its turn. What replaces is in its place already; where
 * pairs exchange, a copy of what they had has been made first. */
static void apply_messages(struct gw_coll_run *run)
{
    struct gw_coll_message message;
    while (gw_coll_row_next(&run->row, GW_COLL_RECEIVED, &run->applied, &message) &&
           (!run->exchanges || gw_coll_cursor_before(run->applied, run->sent)) &&
           (run->cfg.kernels
                ? apply_memory(run, &message)
                : gw_coll_cursor_before(run->applied, gw_coll_run_lane(run, message.peer)->next)))
        run->applied.segment++;
}

/* Where what is combined takes the place of own values, in whatever order, each packet is combined
 * as it comes, and need not be stored first. Where two exchange, once own values are copied. */
static bool merges(const struct gw_coll_run *run, const struct gw_coll_lane *lane,
                   const struct gw_coll_message *message)
{
    bool is_copied =
        run->exchanges && run->cfg.world == 2 && gw_coll_cursor_before(lane->next, run->sent);
    return (run->call.coll->combines_once || is_copied) && !run->call.parts && !run->is_held &&
           message->merge != GW_COLL_COPY;
}

/* Posts memory for the peers' next messages. Without room for it, another event tries again. */
static void post_memory(struct gw_coll_run *run)
{
    struct gw_coll_message message;
    uint32_t awaited_max = run->lane_count * run->cfg.flows;
    for (uint32_t i = 0; run->cfg.kernels && run->awaited < awaited_max; i++) {
        if (i == run->lane_count * run->place_count)
            return;
        struct gw_coll_place *place = &run->places[i];
        struct gw_coll_lane *lane = &run->lanes[i / run->place_count];
        if (place->state != GW_COLL_PLACE_FREE || !gw_coll_lane_next(&run->row, lane, &message))
            continue;
        struct gw_expect expect = {.peer = run->cfg.addresses[message.peer],
                                   .tag = message.tag,
                                   .data = gw_coll_run_memory(run, place, &message),
                                   .bytes = message.bytes};
        if (merges(run, lane, &message)) {
            expect.into = out_at(run, &message);
            expect.merger = &run->mergers[message.merge];
        }
        if (run->call.parts)
            gw_coll_parts_expect(run, place, &message, &expect);
        if (gw_endpoint_expect_part(run->ep, &expect) != GW_OK)
            return;
        place->bytes = message.bytes;
        place->tag = message.tag;
        place->state = GW_COLL_PLACE_AWAITED;
        run->awaited++;
        lane->next.segment++;
    }
}

/* May another message be sent, before those under way are acknowledged? */
static bool may_send(const struct gw_coll_run *run)
{
    for (uint32_t i = 0; i < run->sending; i++)
        if (run->sent_count - run->under_way[i].number >= 2 * run->cfg.flows)
            return false;
    return run->sending < run->cfg.flows;
}

/* Whether the message at `sent` may go. What is combined apart is sent on by the next step, in the
 * same segments: `place` is then where it is, and else NULL. */
static bool is_ready(const struct gw_coll_run *run, const struct gw_coll_message *message,
                     struct gw_coll_place **place)
{
    *place = NULL;
    if (!run->keeps_own)
        return !gw_coll_row_brings(&run->row, run->applied, run->sent.step, message);
    if (run->sent.step == 0)
        return true;
    struct gw_coll_cursor brought = run->sent;
    brought.step--;
    struct gw_coll_step step = gw_coll_row_step(&run->row, brought.step);
    if (step.recv_count == 0)
        return true;
    if (!gw_coll_cursor_before(brought, run->applied))
        return false;
    if (run->cfg.kernels)
        *place = gw_coll_run_place(run, gw_coll_row_tag(&run->row, &step, brought));
    return true;
}

static const void *data_of(const struct gw_coll_run *run, const struct gw_coll_message *message,
                           const struct gw_coll_place *place)
{
    if (!run->cfg.kernels)
        return NULL;
    if (place)
        return gw_coll_run_segment(run, place);
    return run->keeps_own ? gw_coll_call_in(&run->call, message->first) : out_at(run, message);
}

/* The first slot that no message under way has. */
static uint32_t free_slot(const struct gw_coll_run *run)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < run->sending; i++)
        taken |= UINT64_C(1) << run->under_way[i].slot;
    return (uint32_t)__builtin_ctzll(~taken);
}

/* Where the copy of the next message is, which is made first, in one of as many places as there are
 * flows. */
static struct gw_coll_place *copy_of(struct gw_coll_run *run, const struct gw_coll_message *message)
{
    struct gw_coll_place *place = &run->places[run->lane_count * run->place_count];
    if (run->copied)
        return run->copied;
    while (place->state != GW_COLL_PLACE_FREE)
        place++;
    place->bytes = message->bytes;
    memcpy(gw_coll_run_segment(run, place), out_at(run, message), message->bytes);
    return run->copied = place;
}

/* Sends what is ready. Without room for it, another event tries again. */
static void send_messages(struct gw_coll_run *run, gw_time now)
{
    struct gw_coll_message message;
    struct gw_coll_place *place;
    while (may_send(run) && gw_coll_row_next(&run->row, GW_COLL_SENT, &run->sent, &message) &&
           is_ready(run, &message, &place)) {
        uint32_t flow;
        if (run->exchanges)
            place = copy_of(run, &message);
        struct gw_send send = {
            .peer = run->cfg.addresses[message.peer],
            .bytes = message.bytes,
            .data = data_of(run, &message, place),
            .tag = message.tag,
            .class = run->cfg.class,
            .transport = run->cfg.transport,
            .path = run->cfg.path,
            .notice = run->cfg.notice,
        };
        uint32_t slot = free_slot(run);
        if (run->call.parts)
            gw_coll_parts_send(run, slot, place, &message, &send);
        int error = gw_endpoint_send(run->ep, &send, &flow, now);
        if (error == GW_ERR_NO_ROOM)
            return;
        GW_ASSERT(error == GW_OK);
        if (place)
            place->state = GW_COLL_PLACE_SENDING;
        run->under_way[run->sending++] =
            (struct gw_coll_sending){place, flow, run->sent_count++, slot};
        run->sent_to = message.peer;
        run->sent.segment++;
        run->copied = NULL;
    }
}

void gw_coll_run_advance(struct gw_coll_run *run, gw_time now)
{
    if (run->is_held) {
        post_memory(run);
        return;
    }
    apply_messages(run);
    if (run->status.state != GW_COLL_RUN_RUNNING)
        return;
    send_messages(run, now); /* first: what has been copied may be combined with */
    post_memory(run);
    if (run->call.parts && !gw_coll_agreement_advance(run, now))
        return;
    if (gw_coll_run_is_through(run, run->applied) && gw_coll_run_is_through(run, run->sent) &&
        run->sending == 0)
        run->status.state = GW_COLL_RUN_DONE;
}
